/** Queues come into being with their first job; pausing one only stops its jobs from being claimed. */

import { z } from "zod";
import { JOB_STATUSES } from "../../core/job.ts";
import type { JobStatus } from "../../core/job.ts";
import { NameParams } from "../fields.ts";
import { answer, operation } from "../operation.ts";

const counts = Object.fromEntries(JOB_STATUSES.map((status) => [status, z.int()])) as Record<
  JobStatus,
  z.ZodInt
>;

export const QueueBody = z.object({ name: z.string(), paused: z.boolean(), counts: z.object(counts) });
export type QueueBody = z.output<typeof QueueBody>;

export const listQueues = operation({
  name: "list_queues",
  method: "GET",
  path: "/queues",
  summary: "All queues with the number of their jobs by status",
  tag: "queues",
  permission: "read",
  target: { at: "any" },
  mutates: false,
  replies: { 200: z.object({ queues: z.array(QueueBody) }) },
  async handler({ queues }) {
    const all = await queues.list();
    return answer(200, { queues: all.map(({ name, paused, counts }) => ({ name, paused, counts })) });
  },
});

const PausedBody = z.object({ name: z.string(), paused: z.boolean() });

export const pauseQueue = operation({
  name: "pause_queue",
  method: "POST",
  path: "/queues/{name}/pause",
  summary: "Stop handing out the jobs of a queue; those that run go on",
  tag: "queues",
  permission: "operate",
  target: { at: "leader" },
  mutates: true,
  params: NameParams,
  replies: { 200: PausedBody },
  async handler({ queues }, { params }) {
    await queues.setPaused(params.name, true);
    return answer(200, { name: params.name, paused: true });
  },
});

export const resumeQueue = operation({
  name: "resume_queue",
  method: "POST",
  path: "/queues/{name}/resume",
  summary: "Hand out the jobs of a queue again",
  tag: "queues",
  permission: "operate",
  target: { at: "leader" },
  mutates: true,
  params: NameParams,
  replies: { 200: PausedBody },
  async handler({ queues }, { params }) {
    await queues.setPaused(params.name, false);
    return answer(200, { name: params.name, paused: false });
  },
});
