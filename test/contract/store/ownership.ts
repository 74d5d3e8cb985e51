import type { Promises } from "../../support/store-world.ts";
import { dispatchPromises } from "./ownership-dispatch.ts";
import { handoffPromises } from "./ownership-handoff.ts";
import { ownedWritePromises } from "./ownership-writes.ts";

/** For stores that nodes share: push dispatch, and who owns what was dispatched. */
export const OWNERSHIP_SUBJECTS: Readonly<Record<string, Promises>> = {
  dispatch: dispatchPromises,
  handoff: handoffPromises,
  "owned writes": ownedWritePromises,
};
