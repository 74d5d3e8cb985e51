/** Which leases a recovery ends, and how it is charged to their jobs: shared by backends that test leases one by one. */

import { leaseholder } from "../core/agent.ts";
import type { LeaseId } from "../core/ids.ts";
import type { Abandoned } from "./store.ts";

/** Those that end leases. */
export type Dead = Exclude<Abandoned, { by: "overdue" }>;

/**
 * A lease is `<node>/<incarnation>`, or that with more behind another slash, or an agent's (core/agent.ts); no part has a slash
 * in it.
 */
export function isLeftBehind(lease: LeaseId, which: Exclude<Dead, { by: "expiry" }>): boolean {
  const [holder, next] = lease.split("/") as [string, string];
  switch (which.by) {
    case "lives":
      return which.incarnations.includes(next);
    case "everybody":
      return next !== which.except && leaseholder(lease) === null;
    case "holders":
      return which.names.includes(holder) || which.names.includes(`${holder}/${next}`);
  }
}

/** Nobody died over these runs, or nobody can tell: they were interrupted. */
export function wasInterrupted(lease: LeaseId, which: Dead): boolean {
  if (which.by === "holders") return true;
  return which.by === "expiry" && which.unheard === true && leaseholder(lease) !== null;
}
