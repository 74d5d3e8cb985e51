/** What is done with a subject inside its process, the same for all of them. */

import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";
import { serverCpuUs } from "./server-cpu.ts";
import { nowMs, payload, payloads, type Handler, type Subject } from "./subject.ts";

export interface Sample {
  readonly jobs: number;
  readonly perSecond: number;
  /** Of this process, user and system, including what SQLite does in it. */
  readonly cpuUsPerJob: number;
  /** Of the database server; null where there is none, or it cannot be read. */
  readonly serverUsPerJob: number | null;
}

export interface MemorySample {
  readonly jobs: number;
  readonly rssMb: number;
  /** After a full garbage collection. */
  readonly heapMb: number;
}

export type Actions = ReturnType<typeof actions>;

const noop: Handler = async () => {};

/** What so much work costs. Garbage of what went before is not charged to it. */
export async function sampleOf(serverPid: number | undefined, work: () => Promise<number>): Promise<Sample> {
  globalThis.gc?.();
  const serverUs = (): number | null => (serverPid === undefined ? null : serverCpuUs(serverPid));
  const server = serverUs();
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  const jobs = await work();
  const seconds = (performance.now() - startedAt) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  return {
    jobs,
    perSecond: jobs / seconds,
    cpuUsPerJob: (user + system) / jobs,
    serverUsPerJob: server === null ? null : (serverUs()! - server) / jobs,
  };
}

export function actions(subject: Subject, { serverPid }: { readonly serverPid?: number } = {}) {
  const measured = (work: () => Promise<number>): Promise<Sample> => sampleOf(serverPid, work);
  let waitedMs: number[] = [];
  let awaited = { count: 0, resolve: (): void => {} };

  const untilDone = async (): Promise<void> => {
    while ((await subject.unfinished()) > 0) await turn();
  };

  return {
    reset: () => subject.reset(),
    close: () => subject.close(),

    /** A reset, and some time for what a new node does once at its start (it looks for history to remove). */
    async settle(): Promise<void> {
      await subject.reset();
      await sleep(300);
    },

    /** So many callers, each of which awaits its submit before the next one. */
    submitFor: (options: { callers: number; ms: number }): Promise<Sample> =>
      measured(async () => {
        const end = performance.now() + options.ms;
        let n = 0;
        const caller = async (): Promise<void> => {
          while (performance.now() < end) await subject.submit(payload(n++));
        };
        await Promise.all(Array.from({ length: options.callers }, caller));
        return n;
      }),

    bulkFor: (options: { size: number; ms: number }): Promise<Sample> =>
      measured(async () => {
        const end = performance.now() + options.ms;
        let n = 0;
        for (; performance.now() < end; n += options.size) await subject.submitMany(payloads(options.size));
        return n;
      }),

    /** From the word go until every handler has run and the store says that nothing is left. */
    async drain(options: { jobs: number }): Promise<Sample> {
      await fill(subject, options.jobs);
      let ran = 0;
      const all = Promise.withResolvers<void>();
      const sample = await measured(async () => {
        await subject.work(async () => {
          if (++ran === options.jobs) all.resolve();
        });
        await all.promise;
        await untilDone();
        return options.jobs;
      });
      if (ran !== options.jobs) throw new Error(`${ran} handlers ran for ${options.jobs} jobs`);
      return sample;
    },

    /** The next so many of a backlog that is larger, and of which the others are left waiting. */
    async drainSome(options: { jobs: number }): Promise<Sample> {
      let ran = 0;
      const enough = Promise.withResolvers<void>();
      return measured(async () => {
        await subject.work(async () => {
          if (++ran === options.jobs) enough.resolve();
        });
        await enough.promise;
        subject.rest!();
        return ran;
      });
    },

    /** Works from now on, whatever comes. */
    serve: async (): Promise<void> => subject.work(noop),

    /** Runs whatever is still waiting. */
    async finish(): Promise<void> {
      await subject.work(noop);
      await untilDone();
    },

    /** How long each of these submits took, in ms, one after the other. */
    async lone(options: { calls: number; run: boolean }): Promise<{ tookMs: number[]; sample: Sample }> {
      if (options.run) await subject.work(noop);
      const tookMs: number[] = [];
      const sample = await measured(async () => {
        for (let n = 0; n < options.calls; n++) {
          const startedAt = performance.now();
          await subject.submit(payload(n));
          tookMs.push(performance.now() - startedAt);
        }
        return options.calls;
      });
      return { tookMs, sample };
    },

    /** Works from now on, and notes for each job how long ago its submit was called, here or in another process. */
    async collect(): Promise<void> {
      waitedMs = [];
      await subject.work(async ({ t }) => {
        waitedMs.push(nowMs() - t);
        if (waitedMs.length === awaited.count) awaited.resolve();
      });
    },

    /** What was noted, once there are so many; then it begins anew. */
    async collected(options: { jobs: number }): Promise<number[]> {
      const { promise, resolve } = Promise.withResolvers<void>();
      awaited = { count: options.jobs, resolve };
      if (waitedMs.length < options.jobs) await promise;
      await untilDone();
      if (waitedMs.length > options.jobs) throw new Error(`${waitedMs.length} runs of ${options.jobs} jobs`);
      const noted = waitedMs;
      waitedMs = [];
      return noted;
    },

    /** Submits with random gaps, so that nothing falls into step. Gives how long each call took, in ms. */
    async produce(options: { perSecond: number; jobs: number }): Promise<number[]> {
      const gapMs = 1_000 / options.perSecond;
      const startedAt = performance.now();
      const calls: Promise<number>[] = [];
      const submit = async (n: number): Promise<number> => {
        const calledAt = performance.now();
        await subject.submit(payload(n));
        return performance.now() - calledAt;
      };
      for (let n = 0; n < options.jobs; n++) {
        const waitMs = startedAt + (n + Math.random()) * gapMs - performance.now();
        if (waitMs > 0) await sleep(waitMs);
        calls.push(submit(n));
      }
      return Promise.all(calls);
    },

    /** Submits and runs so many jobs, never more than `backlog` of them waiting; looks at the memory on the way. */
    async passThrough(options: { jobs: number; backlog: number; marks: readonly number[] }) {
      let ran = 0;
      await subject.work(async () => void ran++);
      const samples: MemorySample[] = [];
      let submitted = 0;
      const flow = await measured(async () => {
        for (const mark of options.marks) {
          const until = Math.round(options.jobs * mark);
          for (; submitted < until; submitted += 1_000) {
            await subject.submitMany(payloads(Math.min(1_000, until - submitted)));
            while (submitted - ran > options.backlog) await turn();
          }
          await untilDone();
          samples.push(memory(until));
        }
        return options.jobs;
      });
      if (ran !== options.jobs) throw new Error(`${ran} handlers ran for ${options.jobs} jobs`);
      return { flow, samples };
    },
  };
}

async function fill(subject: Subject, jobs: number): Promise<void> {
  for (let left = jobs; left > 0; left -= 1_000) await subject.submitMany(payloads(Math.min(1_000, left)));
}

function memory(jobs: number): MemorySample {
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  return { jobs, rssMb: rss / 2 ** 20, heapMb: heapUsed / 2 ** 20 };
}
