/**
 * Operations on queues. A queue is created by its first job; pausing it only stops its jobs from being claimed. Where
 * each node has its own store, the counts of a queue are summed over the nodes, and a pause is stored by a majority.
 */

import { z } from "zod";
import { acceptsWork, servesQueue, type NodeInfo } from "../../../core/node.ts";
import { total } from "../../../observe/metrics/metrics-duty.ts";
import { NameParams, StatusCounts } from "../../bodies/fields.ts";
import { isoOf } from "../../schema/to-wire.ts";
import { askAllNodes } from "../../ask-all-nodes.ts";
import { answer, operation } from "../../operation.ts";
import type { NodeServices } from "../../node-services.ts";
import { BatonError } from "../../../core/errors.ts";
import type { QueueInfo } from "../../../store/store.ts";
import type { PeerHandler } from "../../../transport/transport.ts";

export const QUEUES_PATH = "/peer/queues";

export function peerQueries({ queues, identity }: NodeServices): Readonly<Record<string, PeerHandler>> {
  return {
    [QUEUES_PATH]: async ({ method }) => {
      if (method !== "GET") throw new BatonError("METHOD_NOT_ALLOWED", `${QUEUES_PATH} is only read`);
      const body = { server: identity.name, queues: await queues.list() };
      return {
        status: 200,
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      };
    },
  };
}

export const QueueBody = z.object({
  name: z.string(),
  paused: z.boolean(),
  counts: StatusCounts,
  oldest_waiting_at: z
    .string()
    .nullable()
    .meta({ description: "since when the oldest job waits that is due and that nobody runs" }),
  slots: z.int().meta({ description: "how many jobs the living workers that serve it may run at once" }),
  submitted_per_second: z.number().nullable().meta({ description: "lately; null where it is not known" }),
  finished_per_second: z.number().nullable(),
});
export type QueueBody = z.output<typeof QueueBody>;

const Reached = z
  .array(z.object({ name: z.string(), reachable: z.boolean() }))
  .optional()
  .meta({ description: "whom this was asked of, where each node keeps its own jobs" });

export const listQueues = operation("GET /queues", {
  summary: "All queues with the number of their jobs by status",
  target: { at: "any" },
  replies: {
    200: z.object({ queues: z.array(QueueBody), nodes: Reached, partial: z.boolean().optional() }),
  },
  async handler(services, { inbound }) {
    const { answers, nodes, partial } = await askAllNodes(services, inbound, {
      here: () => services.queues.list(),
      path: () => QUEUES_PATH,
      read: (body) => (body as { queues: readonly QueueInfo[] }).queues,
    });
    const known = services.cluster.nodes();
    const queues = sum(answers.flatMap((each) => each.answer)).map((part) => bodyOf(part, known));
    return answer(200, nodes.length === 1 ? { queues } : { queues, nodes, partial });
  },
});

const PausedBody = z.object({ name: z.string(), paused: z.boolean(), nodes: Reached });

export const pauseQueue = operation("POST /queues/{name}/pause", {
  summary: "Stop handing out the jobs of a queue; those that run go on",
  params: NameParams,
  replies: { 200: PausedBody },
  handler: (services, { params }) => setPaused(services, params.name, true),
});

export const resumeQueue = operation("POST /queues/{name}/resume", {
  summary: "Hand out the jobs of a queue again",
  params: NameParams,
  replies: { 200: PausedBody },
  handler: (services, { params }) => setPaused(services, params.name, false),
});

/** `nodes`: those that are away have it before they run jobs again. */
async function setPaused(services: NodeServices, name: string, paused: boolean) {
  const { queues, cluster, peers, guarantees } = services;
  await queues.setPaused(name, paused);
  if (!peers || guarantees.shared) return answer(200, { name, paused });
  const nodes = cluster.nodes().map((node) => ({ name: node.name, reachable: node.alive }));
  return answer(200, { name, paused, ...(nodes.length > 1 && { nodes }) });
}

function bodyOf(part: QueueInfo, nodes: readonly NodeInfo[]): QueueBody {
  const { name, paused } = part;
  const workers = nodes.filter((node) => node.alive && acceptsWork(node) && servesQueue(node.load, name));
  const [submitted, finished] = ratesOf(name, nodes);
  return {
    name,
    paused,
    counts: { ...part.counts },
    oldest_waiting_at: part.oldestAt === null ? null : isoOf(part.oldestAt),
    slots: workers.reduce((all, { load }) => all + (load.slots ?? 0), 0),
    submitted_per_second: submitted,
    finished_per_second: finished,
  };
}

/** Of a queue that nobody tells of: nothing, unless somebody has more than it tells. */
function ratesOf(queue: string, nodes: readonly NodeInfo[]): [number | null, number | null] {
  let found = false;
  let unknown = false;
  let [submitted, finished] = [0, 0];
  for (const { alive, load } of nodes) {
    if (!alive) continue;
    const rates = load.traffic?.queues.find(([name]) => name === queue);
    if (rates) {
      found = true;
      submitted += rates[1];
      finished += rates[2];
    } else unknown ||= load.traffic?.others !== false;
  }
  if (!found && unknown) return [null, null];
  return [round(submitted), round(finished)];
}

function round(rate: number): number {
  return Math.round(rate * 10) / 10;
}

/** Paused as a whole only where it is paused everywhere. */
function sum(parts: readonly QueueInfo[]): QueueInfo[] {
  const queues = new Map<string, QueueInfo>();
  for (const part of parts) {
    const known = queues.get(part.name);
    if (!known) {
      queues.set(part.name, part);
      continue;
    }
    const oldest = [known.oldestAt, part.oldestAt].filter((at) => at !== null);
    queues.set(part.name, {
      name: part.name,
      paused: known.paused && part.paused,
      counts: total([known, part]),
      oldestAt: oldest.length === 0 ? null : Math.min(...oldest),
    });
  }
  return [...queues.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
