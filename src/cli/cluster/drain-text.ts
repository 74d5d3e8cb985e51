import type { NodeBody } from "../../api/bodies/node-body.ts";

/** What a drain has done with the jobs that the node owned. */
export function drainText(drain: NonNullable<NodeBody["drain"]>): string {
  const { owned, handed_over: handedOver, finished, waiting, orphaned, released } = drain;
  const parts = [
    `${handedOver} of ${owned} owned ${owned === 1 ? "job" : "jobs"} handed over`,
    ...(finished > 0 ? [`${finished} ended`] : []),
    `${waiting} waiting`,
    `${orphaned} orphaned`,
    ...(released > 0 ? [`${released} released`] : []),
  ];
  return parts.join(", ");
}
