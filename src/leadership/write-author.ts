import type { NodeName } from "../core/ids.ts";
import type { Author } from "../store/store.ts";

/** The numbers that everything written by this node carries. One object until the leader changes: it is compared often. */
export function authorOf(node: NodeName, epoch: () => number): () => Author {
  let author: Author = { node, ownerEpoch: 0, leaderEpoch: 0 };
  return () => {
    const current = epoch();
    if (current > author.leaderEpoch) author = { node, ownerEpoch: current, leaderEpoch: current };
    return author;
  };
}
