/** The author of a write that carried a term: the caller's author, with the epoch of that term. */

import type { Term } from "../core/leadership/term.ts";
import type { Author } from "./store.ts";

export function authorUnder(author: Author, fence: Term | undefined): Author {
  return fence ? { ...author, leaderEpoch: fence.epoch } : author;
}
