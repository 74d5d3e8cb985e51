/**
 * Queues come into being with their first job; pausing one only stops its jobs from being claimed. Where each node keeps its own
 * jobs, a queue is the sum of what the nodes have of it, and all that can be reached are paused.
 */

import { z } from "zod";
import { fanOut } from "../../cluster/fan-out.ts";
import type { NodeAnswer } from "../../cluster/fan-out.ts";
import { JOB_STATUSES } from "../../core/job.ts";
import type { JobStatus } from "../../core/job.ts";
import type { QueueInfo } from "../../store/store.ts";
import { NameParams } from "../fields.ts";
import { answer, operation } from "../operation.ts";
import { QUEUES_PATH } from "../peer-mounts.ts";
import type { NodeServices } from "../services.ts";

const counts = Object.fromEntries(JOB_STATUSES.map((status) => [status, z.int()])) as Record<
  JobStatus,
  z.ZodInt
>;

export const QueueBody = z.object({ name: z.string(), paused: z.boolean(), counts: z.object(counts) });
export type QueueBody = z.output<typeof QueueBody>;

const Reached = z
  .array(z.object({ name: z.string(), reachable: z.boolean() }))
  .optional()
  .meta({ description: "whom this was asked of, where each node keeps its own jobs" });

export const listQueues = operation({
  name: "list_queues",
  method: "GET",
  path: "/queues",
  summary: "All queues with the number of their jobs by status",
  tag: "queues",
  permission: "read",
  target: { at: "any" },
  mutates: false,
  replies: {
    200: z.object({ queues: z.array(QueueBody), nodes: Reached, partial: z.boolean().optional() }),
  },
  async handler(services) {
    const answers = await everywhere(
      services,
      { method: "GET", path: QUEUES_PATH },
      {
        here: () => services.queues.list(),
        read: (body) => (body as { queues: readonly QueueInfo[] }).queues.map(bodyOf),
      },
    );
    if (answers.length === 1) return answer(200, { queues: answers[0]!.answer!.map(bodyOf) });
    const queues = sum(answers.flatMap((each) => each.answer ?? []));
    return answer(200, { queues, nodes: reached(answers), partial: answers.some((each) => !each.answer) });
  },
});

const PausedBody = z.object({ name: z.string(), paused: z.boolean(), nodes: Reached });

export const pauseQueue = operation({
  name: "pause_queue",
  method: "POST",
  path: "/queues/{name}/pause",
  summary: "Stop handing out the jobs of a queue; those that run go on",
  tag: "queues",
  permission: "operate",
  target: { at: "here" },
  mutates: true,
  params: NameParams,
  replies: { 200: PausedBody },
  handler: (services, { params }) => setPaused(services, params.name, true),
});

export const resumeQueue = operation({
  name: "resume_queue",
  method: "POST",
  path: "/queues/{name}/resume",
  summary: "Hand out the jobs of a queue again",
  tag: "queues",
  permission: "operate",
  target: { at: "here" },
  mutates: true,
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

function bodyOf({ name, paused, counts }: QueueInfo): QueueBody {
  return { name, paused, counts: { ...counts } };
}

/** Paused as a whole only where it is paused everywhere. */
function sum(parts: readonly QueueInfo[]): QueueBody[] {
  const queues = new Map<string, QueueBody>();
  for (const part of parts) {
    const known = queues.get(part.name);
    if (!known) {
      queues.set(part.name, bodyOf(part));
      continue;
    }
    known.paused &&= part.paused;
    for (const status of JOB_STATUSES) known.counts[status] += part.counts[status];
  }
  return [...queues.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
