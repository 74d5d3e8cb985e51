/**
 * Agents: workers that lease jobs over HTTP.
 *
 * The lease of an agent is named `agent:<name>/<uuid>`, or `agent:<name>/<request>/<uuid>` if the agent named the
 * request. The lease of a node has the incarnation after the slash, so the death of a node never ends the lease of an
 * agent. Results name their lease, so an agent cannot post the result of a node's worker.
 */

import type { LeaseId } from "./ids.ts";

/** Longer than a node's, because one that moonlights is called `<node>-worker`; without a slash, which ends it in the name of a lease. */
export const AGENT_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$/;

/** What an agent may call a request for a lease. */
export const REQUEST_ID = /^[A-Za-z0-9._~-]{1,64}$/;

/** What the names of all leases of agents begin with; no node is called so. */
export const AGENT_LEASES = "agent:";

export function agentLease(agent: string, request: string | undefined, uuid: string): LeaseId {
  return `${leasesOf(agent, request)}/${uuid}` as LeaseId;
}

/** What the names of all leases of an agent, or of one request of it, begin with. */
export function leasesOf(agent: string, request?: string): string {
  return request === undefined ? `${AGENT_LEASES}${agent}` : `${AGENT_LEASES}${agent}/${request}`;
}

/** Whose lease it is; null for one that is no agent's. */
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

/** How an agent says that a run ended. */
export const RESULT_STATUSES = ["succeeded", "failed", "cancelled", "released"] as const;
