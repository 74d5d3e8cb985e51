/**
 * Operations on queues; pausing one stops its jobs from being claimed. Where each node has its own store, the counts are
 * summed over the nodes, and a pause is stored by a majority.
 */

import { z } from "zod";
import { rounded, sumOf } from "../../../core/format-figures.ts";
import { BatonError, nearest } from "../../../core/errors.ts";
import { acceptsWork, servesQueue, type NodeInfo } from "../../../core/node.ts";
import { total } from "../../../observe/metrics/metrics-duty.ts";
import { NameParams, StatusCounts, type ByName } from "../../bodies/fields.ts";
import { fromWire, toWire } from "../../schema/to-wire.ts";
import { askAllNodes } from "../../ask-all-nodes.ts";
import { answer, operation } from "../../operation.ts";
import type { NodeServices } from "../../node-services.ts";
import type { Inbound } from "../../../transport/hop-headers.ts";
import type { QueueInfo } from "../../../store/store.ts";

export const QueueBody = z.object({
  name: z.string(),
  paused: z.boolean(),
  counts: StatusCounts,
  oldest_waiting_at: z
    .string()
    .nullable()
    .describe("since when the oldest job waits that is due and that nobody runs"),
  slots: z.int().describe("how many jobs the living workers that serve it may run at once"),
  submitted_per_second: z.number().nullable().describe("lately; null where it is not known"),
  finished_per_second: z.number().nullable(),
});
export type QueueBody = z.output<typeof QueueBody>;
const NAMES = { oldest_waiting_at: "oldestAt" } as const;
const queueBody = toWire(QueueBody, NAMES);
const queueOf = fromWire(QueueBody, NAMES);

const Reached = z
  .array(z.object({ name: z.string(), reachable: z.boolean() }))
  .optional()
  .describe("whom this was asked of, where each node keeps its own jobs");

const QueuesBody = z.object({ queues: z.array(QueueBody) });

export const listQueues = operation("GET /queues", {
  summary: "All queues with the number of their jobs by status",
  target: { at: "any" },
  replies: {
    200: QueuesBody.extend({ nodes: Reached, partial: z.boolean().optional() }),
  },
  async handler(services, { inbound }) {
    const { answers, nodes, partial } = await askForQueues(services, inbound);
    const known = services.cluster.nodes();
    const queues = sum(answers.flatMap((each) => each.answer)).map((part) => bodyOf(part, known));
    return answer(200, nodes.length === 1 ? { queues } : { queues, nodes, partial });
  },
});

function askForQueues(services: NodeServices, inbound: Inbound) {
  return askAllNodes<readonly QueueInfo[]>(services, inbound, {
    here: () => services.queues.list(),
    path: () => "/queues",
    read: (body) => QueuesBody.parse(body).queues.map(queueOf),
  });
}

const PausedBody = z.object({ name: z.string(), paused: z.boolean(), nodes: Reached });

const PausingBody = z.strictObject({
  allow_unknown: z
    .boolean()
    .optional()
    .describe("true or false: whether to take a queue that has had no job so far"),
});

interface Pausing extends ByName {
  readonly body: z.output<typeof PausingBody> | null;
  readonly inbound: Inbound;
}

/** In doubt it is there: while a node cannot be reached, and before the first job of all. */
async function requireQueue(services: NodeServices, inbound: Inbound, name: string): Promise<void> {
  const { answers, partial } = await askForQueues(services, inbound);
  const served = services.cluster.nodes().flatMap(({ load }) => load.serves?.queues ?? []);
  const known = new Set([...answers.flatMap((each) => each.answer).map((queue) => queue.name), ...served]);
  if (partial || known.size === 0 || known.has(name)) return;
  const near = nearest(name, known);
  const guess = near === null ? "" : `; did you mean ${near}?`;
  const message = `there is no queue "${name}"${guess}; a queue is created by its first job: to name it before that, give "allow_unknown": true`;
  throw new BatonError("NOT_FOUND", message, { field: "name" });
}

/** `nodes`: those that are away have it before they run jobs again. */
const pausing = (paused: boolean) => ({
  params: NameParams,
  body: PausingBody.nullable(),
  replies: { 200: PausedBody },
  async handler(services: NodeServices, { params: { name }, body, inbound }: Pausing) {
    const { queues, cluster, peers, guarantees } = services;
    if (!body?.allow_unknown) await requireQueue(services, inbound, name);
    await queues.setPaused(name, paused);
    if (!peers || guarantees.shared) return answer(200, { name, paused });
    const nodes = cluster.nodes().map((node) => ({ name: node.name, reachable: node.alive }));
    return answer(200, { name, paused, ...(nodes.length > 1 && { nodes }) });
  },
});

export const pauseQueue = operation("POST /queues/{name}/pause", {
  summary: "Stop handing out the jobs of a queue; those that run go on",
  ...pausing(true),
});

export const resumeQueue = operation("POST /queues/{name}/resume", {
  summary: "Hand out the jobs of a queue again",
  ...pausing(false),
});

function bodyOf(queue: QueueInfo, nodes: readonly NodeInfo[]): QueueBody {
  const { name } = queue;
  const workers = nodes.filter((node) => node.alive && acceptsWork(node) && servesQueue(node.load, name));
  const slots = sumOf(workers, ({ load }) => load.slots);
  const [submittedPerSecond, finishedPerSecond] = ratesOf(name, nodes);
  return queueBody({ ...queue, slots, submittedPerSecond, finishedPerSecond });
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
  return [rounded(submitted), rounded(finished)];
}

/** Paused as a whole only where it is paused everywhere. */
function sum(parts: readonly QueueInfo[]): QueueInfo[] {
  const queues = [...Map.groupBy(parts, ({ name }) => name)].map(([name, same]): QueueInfo => {
    const oldest = Math.min(...same.map(({ oldestAt }) => oldestAt ?? Infinity));
    const paused = same.every((part) => part.paused);
    return { name, paused, counts: total(same), oldestAt: oldest === Infinity ? null : oldest };
  });
  return queues.sort((a, b) => (a.name < b.name ? -1 : 1));
}
