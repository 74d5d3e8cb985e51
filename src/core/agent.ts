/**
 * Agents: workers that lease over HTTP.
 *
 * A lease of theirs is called `agent:<name>/<uuid>`. Leases of nodes have the incarnation of their node behind the slash, so that no
 * node's death ends an agent's lease; and whoever posts a result names a lease, so that nobody can speak for a node's worker.
 */

import type { LeaseId } from "./ids.ts";

/** Longer than a node's, because one that moonlights is called `<node>-worker`; without a slash, which ends it in the name of a lease. */
export const AGENT_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$/;

const PREFIX = "agent:";

export function agentLease(agent: string, uuid: string): LeaseId {
  return `${PREFIX}${agent}/${uuid}` as LeaseId;
}

/** Whose lease it is; null for one that is no agent's. */
export function leaseholder(lease: string): string | null {
  const slash = lease.lastIndexOf("/");
  if (!lease.startsWith(PREFIX) || slash <= PREFIX.length) return null;
  const name = lease.slice(PREFIX.length, slash);
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
