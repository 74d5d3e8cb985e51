/** Which requests can safely be sent twice. */

import type { Route } from "../../api/operation-table.ts";
import type { Repeat } from "./cluster-connection.ts";

/**
 * Changes whose second time changes nothing more. What is not here counts as unsafe: a job that is retried, a schedule that is
 * triggered, a task that is called, a lease, lines of a log.
 */
const HARMLESS: ReadonlySet<string> = new Set<Route>([
  "POST /jobs/{id}/cancel",
  "DELETE /jobs/{id}",
  "POST /queues/{name}/pause",
  "POST /queues/{name}/resume",
  "POST /schedules",
  "PUT /schedules/{name}",
  "DELETE /schedules/{name}",
  "POST /schedules/{name}/pause",
  "POST /schedules/{name}/resume",
  "POST /schedules/preview",
  "POST /cluster/nodes/{name}/drain",
  "POST /cluster/nodes/{name}/resume",
  "POST /v1/leases/renew",
  "POST /v1/results",
  "POST /v1/agents/heartbeat",
  "DELETE /v1/agents/{agent_name}",
]);

export function repeatOf(route: Route, body: unknown): Repeat {
  if (route.startsWith("GET ") || HARMLESS.has(route)) return "always";
  return (route === "POST /jobs" || route === "POST /v1/jobs") && isKeyed(body) ? "keyed" : "never";
}

function isKeyed(body: unknown): boolean {
  const jobs = (Array.isArray(body) ? body : [body]) as readonly { readonly idempotency_key?: unknown }[];
  return jobs.every(({ idempotency_key: key }) => key !== undefined);
}
