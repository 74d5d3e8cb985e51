/** SQL for the fence of leaders' writes, in statements that are a whole transaction. */

import type { Term } from "../../core/leadership/term.ts";

/** This term, if it is the newest. The parameters from this number on are `termValues`. */
export const newest = (first: number): string =>
  `SELECT FROM baton.term WHERE role = $${first} AND leader = $${first + 1} AND incarnation = $${first + 2} AND epoch = $${first + 3}::bigint`;

/** `holdTerm` for a statement that is the whole transaction: after a grant that came first, the row is not found. */
export const fenceFrom = (first: number): string => `fence AS MATERIALIZED (${newest(first)} FOR SHARE)`;

export function termValues({ role, leader, incarnation, epoch }: Term): unknown[] {
  return [role, leader, incarnation, epoch];
}
