/** A node as it travels. */

import { z } from "zod";
import type { NodeInfo } from "../core/node.ts";
import { isoOf } from "./fields.ts";

export const NodeBody = z.object({
  name: z.string(),
  status: z.string().meta({ description: "joining, active, draining or dead" }),
  last_seen: z.string().nullable().meta({ description: "null: never yet" }),
  alive: z.boolean().meta({ description: "not dead, and heard of lately" }),
  incarnation: z.string(),
  url: z.string().nullable(),
  hostname: z.string(),
  address: z.string().nullable(),
  http_port: z.int().nullable(),
  roles: z.array(z.string()),
  capabilities: z.array(z.string()).meta({ description: "the tasks that it can run" }),
  version: z.string(),
  started_at: z.string(),
  load: z.object({
    jobs: z.int().meta({ description: "how many run now" }),
    connections: z.int(),
    cpu: z.number().meta({ description: "a share between 0 and 1, as memory" }),
    memory: z.number(),
    loop_lag_ms: z.number(),
  }),
});
export type NodeBody = z.output<typeof NodeBody>;

export function nodeBody(node: NodeInfo): NodeBody {
  const { jobs, connections, cpu, memory, loopLagMs } = node.load;
  return {
    name: node.name,
    status: node.status,
    last_seen: node.lastSeenAt === 0 ? null : isoOf(node.lastSeenAt),
    alive: node.alive,
    incarnation: node.incarnation,
    url: node.url,
    hostname: node.hostname,
    address: node.address,
    http_port: node.httpPort,
    roles: [...node.roles],
    capabilities: [...node.capabilities],
    version: node.version,
    started_at: isoOf(node.startedAt),
    load: { jobs, connections, cpu, memory, loop_lag_ms: loopLagMs },
  };
}
