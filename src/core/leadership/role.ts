/**
 * The leader role of a node, and what it permits.
 *
 * A draining node reports DRAINING until it takes work again, also after its term has ended, so that callers send work
 * to other nodes.
 */

import type { Term } from "./term.ts";

export type Role = "LEADER" | "STANDBY" | "DRAINING";

/** As in `GET /role`. */
export function roleOf(held: Term | null, draining: boolean): Role {
  if (draining) return "DRAINING";
  return held ? "LEADER" : "STANDBY";
}

/** `lead`: new work, leases, agents. `finish`: results, renewals and logs of runs that began in this very term. */
export type Write = "lead" | "finish";

/** `held`: the own term, which a draining node keeps until it has stepped down. */
export function permits(held: Term | null, draining: boolean, write: Write): held is Term {
  return held !== null && (!draining || write === "finish");
}
