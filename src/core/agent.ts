/**
 * Agents: workers that lease jobs over HTTP.
 *
 * The lease of an agent is named `agent:<name>/<uuid>`, or `agent:<name>/<request>/<uuid>` if the agent named the
 * request. The lease of a node has the incarnation after the slash, so the death of a node never ends the lease of an
 * agent. Results name their lease, so an agent cannot post the result of a node's worker.
 */

import type { LeaseId } from "./ids.ts";

/**
 * Longer than that of a node, because the agent of a node is called `<node>-worker`. Without a slash, which ends it in
 * the name of a lease.
 */
export const AGENT_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$/;

export const REQUEST_ID = /^[A-Za-z0-9._~-]{1,64}$/;

/** Prefix of the leases of all agents; no node has such a name. */
export const AGENT_LEASES = "agent:";

export function agentLease(agent: string, request: string | undefined, uuid: string): LeaseId {
  return `${leasesOf(agent, request)}/${uuid}` as LeaseId;
}

/** Prefix of the leases of an agent, or of one of its requests. */
export function leasesOf(agent: string, request?: string): string {
  return request === undefined ? `${AGENT_LEASES}${agent}` : `${AGENT_LEASES}${agent}/${request}`;
}

export function leaseholder(lease: string): string | null {
  const slash = lease.indexOf("/");
  if (!lease.startsWith(AGENT_LEASES) || slash <= AGENT_LEASES.length) return null;
  const name = lease.slice(AGENT_LEASES.length, slash);
  return AGENT_NAME.test(name) ? name : null;
}

export type AgentState = "alive" | "stale" | "removed";

export function agentState(
  agent: { readonly lastSeenAt: number; readonly removedAt: number | null },
  now: number,
  staleAfterMs: number,
): AgentState {
  if (agent.removedAt !== null) return "removed";
  return now - agent.lastSeenAt > staleAfterMs ? "stale" : "alive";
}

export const RESULT_STATUSES = ["succeeded", "failed", "cancelled", "released"] as const;
