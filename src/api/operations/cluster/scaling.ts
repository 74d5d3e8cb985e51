/** How many workers there should be, for autoscalers: applies core/health/scaling.ts to the state of the cluster. */

import { z } from "zod";
import { BatonError } from "../../../core/errors.ts";
import { sumOf } from "../../../core/format-figures.ts";
import { FUNCTIONS_QUEUE } from "../../../core/jobs/job.ts";
import { servesQueue, type NodeInfo } from "../../../core/node.ts";
import { quantiles } from "../../../core/health/quantiles.ts";
import { desiredWorkers, type ScalingFacts } from "../../../core/health/scaling.ts";
import { askAllNodes, searchOf } from "../../ask-all-nodes.ts";
import { milliseconds, Name, whole } from "../../bodies/fields.ts";
import { answer, operation } from "../../operation.ts";
import { fromWire, toWire } from "../../schema/to-wire.ts";
import type { NodeServices } from "../../node-services.ts";

const DAY_MS = 86_400_000;
const Workers = whole(0, 10_000);

export const ScalingQuery = z.strictObject({
  queue: Name.optional(),
  target_ms: milliseconds(1_000, DAY_MS, ": what waits is to be done by then").default(60_000),
  min: Workers.default(0),
  max: Workers.default(1_000),
  slots_per_worker: whole(1, 10_000, ": of agents, and of a worker while there is none").default(10),
});
type ScalingQuery = z.output<typeof ScalingQuery>;

const FactsBody = z.object({
  current_workers: z.int(),
  slots: z.int().describe("jobs that all of them may run at a time"),
  busy: z.int().describe("jobs that run now"),
  backlog: z.int().describe("jobs that are due and wait, in queues that are not paused"),
  oldest_age_ms: z.int().nullable(),
  run_ms_p50: z.int().nullable().describe("of jobs that ended lately"),
});
const NAMES = {
  current_workers: "workers",
  busy: "running",
  backlog: "ready",
  oldest_age_ms: "oldestMs",
  run_ms_p50: "runMs",
} as const;
const factsBody = toWire(FactsBody, NAMES);
const factsOf = fromWire(FactsBody, NAMES);

const ScalingBody = z.object({
  desired_workers: z.int(),
  ...FactsBody.shape,
  reason: z.string(),
  partial: z.boolean(),
  unreachable: z.array(z.string()),
});

const RUNS_LOOKED_AT = 100;

export const getScaling = operation("GET /scaling", {
  summary: "How many workers it takes to do what waits in time, for autoscalers",
  query: ScalingQuery,
  replies: { 200: ScalingBody },
  async handler(services, { query, inbound }) {
    if (query.min > query.max) {
      const message = `"min" must not be more than "max", and ${query.min} is more than ${query.max}`;
      throw new BatonError("BAD_REQUEST", message, { field: "min" });
    }
    const { answers, partial, unreachable } = await askAllNodes<ScalingFacts>(services, inbound, {
      here: () => factsHere(services, query),
      path: () => `/scaling${searchOf(query)}`,
      read: (body) => factsOf(FactsBody.parse(body)),
    });
    const facts = merged(answers.map((each) => each.answer));
    const { target_ms: targetMs, min, max, slots_per_worker: slotsPerWorker } = query;
    const desired = desiredWorkers(facts, { targetMs, min, max, slotsPerWorker });
    const { workers, reason } = desired;
    return answer(200, { desired_workers: workers, ...factsBody(facts), reason, partial, unreachable });
  },
});

async function factsHere(services: NodeServices, query: ScalingQuery): Promise<ScalingFacts> {
  const { insight, cluster, identity, guarantees, clock } = services;
  const snapshot = await insight.read();
  const meant = (queue: string): boolean =>
    query.queue === undefined ? queue !== FUNCTIONS_QUEUE : queue === query.queue;
  const queues = snapshot.queues.filter(({ name, paused }) => meant(name) && !paused);
  const sinces = snapshot.waiting.filter(({ queue, paused }) => meant(queue) && !paused);
  const oldest = Math.min(...sinces.map(({ since }) => since));
  const all = cluster.nodes();
  // Where the store is not shared, each tells of itself.
  const nodes = (guarantees.shared ? all : all.filter(({ name }) => name === identity.name)).filter((node) =>
    worksOn(node, query.queue),
  );
  return {
    workers: nodes.length + snapshot.agents,
    slots:
      sumOf(nodes, ({ load }) => load.slots ?? query.slots_per_worker) +
      snapshot.agents * query.slots_per_worker,
    running: sumOf(queues, ({ counts }) => counts.processing),
    ready: sumOf(queues, ({ counts }) => counts.queued),
    oldestMs: oldest === Infinity ? null : Math.max(0, Math.round(clock.now() - oldest)),
    runMs:
      query.queue === undefined ? (snapshot.times.run?.p50 ?? null) : await runMsOf(services, query.queue),
  };
}

function worksOn(node: NodeInfo, queue: string | undefined): boolean {
  if (node.status !== "active" || !node.alive) return false;
  const role = queue === FUNCTIONS_QUEUE ? "function" : "worker";
  return (
    node.roles.includes(role) &&
    node.load.slots !== 0 &&
    (queue === undefined || servesQueue(node.load, queue))
  );
}

async function runMsOf({ jobs }: NodeServices, queue: string): Promise<number | null> {
  const page = await jobs.list({ status: "completed", queue, limit: RUNS_LOOKED_AT });
  const runs = page.jobs.flatMap(({ startedAt, finishedAt }) =>
    startedAt === null || finishedAt === null ? [] : [Math.max(0, finishedAt - startedAt)],
  );
  return quantiles(runs)?.p50 ?? null;
}

/** Of several nodes that each keep their own jobs: the longest run time of them, rather a worker too many than one too few. */
function merged(parts: readonly ScalingFacts[]): ScalingFacts {
  const most = (times: readonly (number | null)[]): number | null => {
    const known = times.filter((ms) => ms !== null);
    return known.length === 0 ? null : Math.max(...known);
  };
  return {
    workers: sumOf(parts, ({ workers }) => workers),
    slots: sumOf(parts, ({ slots }) => slots),
    running: sumOf(parts, ({ running }) => running),
    ready: sumOf(parts, ({ ready }) => ready),
    oldestMs: most(parts.map(({ oldestMs }) => oldestMs)),
    runMs: most(parts.map(({ runMs }) => runMs)),
  };
}
