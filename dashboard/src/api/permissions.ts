/** What one must be allowed to do for a request. A test compares it with the table of operations; the node decides in any case. */

import type { Route } from "../../../src/api/operation-table.ts";
import type { Permission } from "../../../src/core/access/permissions.ts";

/** Of what the page asks, where it is not `read` for a question and `operate` for a change. */
const OTHERS: Partial<Record<Route, Permission>> = {
  "POST /jobs": "submit",
  "DELETE /v1/agents/{agent_name}": "admin",
  "GET /node/settings": "operate",
  "POST /schedules/preview": "read",
  "DELETE /session": "read",
  "GET /tokens": "admin",
  "POST /tokens": "admin",
  "DELETE /tokens/{id}": "admin",
  "GET /users": "admin",
  "POST /users": "admin",
  "PUT /users/{name}/password": "admin",
  "DELETE /users/{name}": "admin",
};

export function neededFor(route: Route): Permission {
  return OTHERS[route] ?? (route.startsWith("GET ") ? "read" : "operate");
}
