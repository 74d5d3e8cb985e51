/** Who has written, when the write carried a term: the caller's author, but the epoch is that of the term, which was compared. */

import type { Term } from "../core/leadership/term.ts";
import type { Author } from "./store.ts";

export function authorUnder(author: Author, fence: Term | undefined): Author {
  return fence ? { ...author, leaderEpoch: fence.epoch } : author;
}
