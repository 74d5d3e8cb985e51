/**
 * Operations on queues. A queue is created by its first job; pausing it only stops its jobs from being claimed. Where
 * each node has its own store, the counts of a queue are summed over the nodes, and it is paused on all nodes that can
 * be reached.
 */

import { z } from "zod";
import { fanOut } from "../../../peers/fan-out.ts";
import type { NodeAnswer } from "../../../peers/fan-out.ts";
import { JOB_STATUSES } from "../../../core/jobs/job.ts";
import type { JobStatus } from "../../../core/jobs/job.ts";
import { acceptsWork, servesQueue, type NodeInfo } from "../../../core/node.ts";
import { isoOrNull, NameParams } from "../../bodies/fields.ts";
import { answer, operation } from "../../operation.ts";
import { queueParts, QUEUES_PATH, type QueuePart } from "../../peer-queries.ts";
import type { NodeServices } from "../../node-services.ts";

const counts = Object.fromEntries(JOB_STATUSES.map((status) => [status, z.int()])) as Record<
  JobStatus,
  z.ZodInt
>;

export const QueueBody = z.object({
  name: z.string(),
  paused: z.boolean(),
  counts: z.object(counts),
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
  name: "list_queues",
  summary: "All queues with the number of their jobs by status",
  tag: "queues",
  permission: "read",
  target: { at: "any" },
  replies: {
    200: z.object({ queues: z.array(QueueBody), nodes: Reached, partial: z.boolean().optional() }),
  },
  async handler(services) {
    const answers = await everywhere(
      services,
      { method: "GET", path: QUEUES_PATH },
      {
        here: () => queueParts(services),
        read: (body) => (body as { queues: readonly QueuePart[] }).queues,
      },
    );
    const nodes = services.cluster.nodes();
    const queues = sum(answers.flatMap((each) => each.answer ?? [])).map((part) => bodyOf(part, nodes));
    if (answers.length === 1) return answer(200, { queues });
    return answer(200, { queues, nodes: reached(answers), partial: answers.some((each) => !each.answer) });
  },
});

const PausedBody = z.object({ name: z.string(), paused: z.boolean(), nodes: Reached });

export const pauseQueue = operation("POST /queues/{name}/pause", {
  name: "pause_queue",
  summary: "Stop handing out the jobs of a queue; those that run go on",
  tag: "queues",
  permission: "operate",
  params: NameParams,
  replies: { 200: PausedBody },
  handler: (services, { params }) => setPaused(services, params.name, true),
});

export const resumeQueue = operation("POST /queues/{name}/resume", {
  name: "resume_queue",
  summary: "Hand out the jobs of a queue again",
  tag: "queues",
  permission: "operate",
  params: NameParams,
  replies: { 200: PausedBody },
  handler: (services, { params }) => setPaused(services, params.name, false),
});

/** Without a leader: a queue that does harm must be stopped also in a half of the cluster that has none. */
async function setPaused(services: NodeServices, name: string, paused: boolean) {
  const request = {
    method: "POST",
    path: QUEUES_PATH,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name, paused }),
  } as const;
  const answers = await everywhere(services, request, {
    here: async () => {
      await services.queues.setPaused(name, paused);
      return true;
    },
    read: () => true,
  });
  return answer(200, { name, paused, ...(answers.length > 1 && { nodes: reached(answers) }) });
}

/** Of this node alone where all of them share a store. */
function everywhere<Answer>(
  { identity, cluster, peers, guarantees }: NodeServices,
  request: Parameters<NonNullable<NodeServices["peers"]>["call"]>[1],
  { here, read }: { here: () => Promise<Answer>; read: (body: unknown) => Answer },
): Promise<NodeAnswer<Answer>[]> {
  const self = identity.name;
  const all = cluster.nodes();
  const nodes = peers && !guarantees.shared ? all : all.filter(({ name }) => name === self);
  return fanOut({
    nodes,
    self,
    here,
    request: () => request,
    call: (url, sent, options) => peers!.call(url, sent, options),
    read,
  });
}

function reached(answers: readonly NodeAnswer<unknown>[]) {
  return answers.map(({ node, answer: given }) => ({ name: node.name, reachable: given !== null }));
}

function bodyOf(part: QueuePart, nodes: readonly NodeInfo[]): QueueBody {
  const { name, paused } = part;
  const workers = nodes.filter((node) => node.alive && acceptsWork(node) && servesQueue(node.load, name));
  const [submitted, finished] = ratesOf(name, nodes);
  return {
    name,
    paused,
    counts: { ...part.counts },
    oldest_waiting_at: isoOrNull(part.oldestAt ?? null),
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
function sum(parts: readonly QueuePart[]): QueuePart[] {
  const queues = new Map<string, QueuePart>();
  for (const part of parts) {
    const known = queues.get(part.name);
    if (!known) {
      queues.set(part.name, part);
      continue;
    }
    const counted = Object.fromEntries(
      JOB_STATUSES.map((status) => [status, known.counts[status] + part.counts[status]]),
    ) as QueuePart["counts"];
    const oldest = [known.oldestAt, part.oldestAt].filter((at) => typeof at === "number");
    queues.set(part.name, {
      name: part.name,
      paused: known.paused && part.paused,
      counts: counted,
      oldestAt: oldest.length === 0 ? null : Math.min(...oldest),
    });
  }
  return [...queues.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
