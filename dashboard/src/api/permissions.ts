/**
 * What one must be allowed to do for each change that the page can make. A test compares it with the table of operations; the
 * node decides in any case.
 */

import type { Permission } from "../../../src/core/access/permissions.ts";

export const NEEDS = {
  "POST /jobs": "submit",
  "POST /jobs/{id}/cancel": "operate",
  "POST /jobs/{id}/retry": "operate",
  "DELETE /jobs/{id}": "operate",
  "POST /cluster/jobs/bulk": "operate",
  "POST /queues/{name}/pause": "operate",
  "POST /queues/{name}/resume": "operate",
  "PUT /schedules/{name}": "operate",
  "POST /schedules/{name}/pause": "operate",
  "POST /schedules/{name}/resume": "operate",
  "POST /schedules/{name}/trigger": "operate",
  "DELETE /schedules/{name}": "operate",
  "POST /cluster/nodes/{name}/drain": "operate",
  "POST /cluster/nodes/{name}/resume": "operate",
  "DELETE /cluster/nodes/{name}": "operate",
  "DELETE /v1/agents/{agent_name}": "admin",
  "GET /node/settings": "operate",
  "GET /tokens": "admin",
  "POST /tokens": "admin",
  "DELETE /tokens/{id}": "admin",
  "GET /users": "admin",
  "POST /users": "admin",
  "PUT /users/{name}/password": "admin",
  "DELETE /users/{name}": "admin",
} as const satisfies Record<string, Permission>;

export type Guarded = keyof typeof NEEDS;
