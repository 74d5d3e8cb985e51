/**
 * The messages between a supervisor and its controller, over the control channel between the two processes. They are
 * strictly ordered, which polling over HTTP would not be:
 *
 *   controller                          node-controller
 *       | ---- started {url} -----------------> |
 *       | ---- standing {role, leader} -------> |  agent on or off
 *       | ---- may_lead {epoch} --------------> |  agent off
 *       | <--- agent_off {epoch, ended} ------- |
 *       | <--- report ------------------------- |  shown with the node
 *       | <--- retire ------------------------- |  the agent has ended for good
 *       | ---- retired -----------------------> |  its token is revoked
 *       | <--- stop --------------------------- |  where there are no signals
 */

import type { ControllerState } from "../core/supervision.ts";
import type { SupervisorReport } from "./supervisor-report.ts";

export type FromController =
  | { readonly baton: "started"; readonly url: string }
  | ({ readonly baton: "standing" } & ControllerState)
  | { readonly baton: "may_lead"; readonly epoch: number }
  | { readonly baton: "retired" };

export type ToChild =
  /** With the names of agents that were ended on purpose, and could give nothing back while nobody led. */
  | { readonly baton: "agent_off"; readonly epoch: number; readonly ended: readonly string[] }
  | { readonly baton: "report"; readonly report: SupervisorReport }
  | { readonly baton: "retire" }
  | { readonly baton: "stop" };

/** The environment variable that tells a child whose it is: the process id of its node-controller. */
export const SUPERVISOR_VARIABLE = "BATON_SUPERVISOR";

/** A token for the agent, where callers are asked for one: made by the node-controller, adopted by its controller. */
export const AGENT_TOKEN_VARIABLE = "BATON_AGENT_TOKEN";

/** Both ends are one version of one program; whatever else comes over the channel is not ours. */
export function messageOf(value: unknown): FromController | ToChild | null {
  const ours = typeof value === "object" && value !== null && "baton" in value;
  return ours ? (value as FromController | ToChild) : null;
}

export function stopAsSignal(): void {
  if (process.env[SUPERVISOR_VARIABLE] !== String(process.ppid) || !process.send) return;
  process.on("message", (message) => {
    if (messageOf(message)?.baton === "stop") process.emit("SIGTERM", "SIGTERM");
  });
}
