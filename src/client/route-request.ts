/** A route of the operation table as a request, and whether it may be sent twice. The dashboard uses it, so it knows nothing of Node. */

import type { Method } from "../api/operation.ts";
import type { Route } from "../api/operation-table.ts";
import type { Repeat } from "./connection/cluster-connection.ts";

interface Filled {
  readonly params?: unknown;
  readonly query?: unknown;
}

export function routePath(route: string, parts: Filled): { method: Method; path: string } {
  const [method, pattern] = route.split(" ") as [Method, string];
  const params = (parts.params ?? {}) as Record<string, string>;
  const path = pattern.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name]!));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(
    (parts.query ?? {}) as Record<string, string | number | undefined>,
  )) {
    if (value !== undefined) query.set(name, String(value));
  }
  return { method, path: query.size === 0 ? path : `${path}?${query.toString()}` };
}

/** Repeating these changes nothing more. All others count as unsafe, such as a retry, a trigger, a call or a lease. */
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
