import { isFinal } from "../../../src/core/jobs/job.ts";
import type { ClaimedJob, JobStore, Submitted } from "../../../src/store/store.ts";
import type { BrokenStores } from "./broken.ts";

/** A set that has everything. */
class Anything extends Set<string> {
  override has(): boolean {
    return true;
  }
}

/** About what is taken in, in which order it is given out, and how it is listed. */
export const BROKEN_LINES: BrokenStores = {
  "loses the second job of a batch": {
    caughtBy: "a large batch is answered and kept in its order",
    replace: ({ jobs }) => ({
      jobs: {
        async submit(batch, author) {
          const answers = await jobs.submit(batch, author);
          if (answers[1] && !answers[1].existed) await jobs.remove(answers[1].id);
          return answers;
        },
      },
    }),
  },

  "stores a batch job by job": {
    caughtBy: "a batch that cannot be stored as a whole stores nothing",
    replace: ({ jobs }) => ({
      jobs: {
        async submit(batch, author) {
          const answers: Submitted[] = [];
          for (const job of batch) answers.push(...(await jobs.submit([job], author)));
          return answers;
        },
      },
    }),
  },

  "forgets idempotency keys": {
    caughtBy: "the same idempotency key in a later batch is the same job",
    replace: ({ jobs }) => ({
      jobs: {
        submit: async (batch, author) =>
          jobs.submit(
            batch.map((job) => ({ ...job, idempotencyKey: null })),
            author,
          ),
      },
    }),
  },

  "forgets the idempotency key of a finished job": {
    caughtBy: "an idempotency key holds after its job has failed or was cancelled",
    replace: ({ jobs }) => ({
      jobs: {
        async submit(batch, author) {
          const answers = await jobs.submit(batch, author);
          return Promise.all(
            answers.map(async (answer, index) => {
              if (!answer.existed || !isFinal(answer.status)) return answer;
              const [anew] = await jobs.submit([{ ...batch[index]!, idempotencyKey: null }], author);
              return anew!;
            }),
          );
        },
      },
    }),
  },

  "runs delayed jobs at once": {
    caughtBy: "a job with a delay is scheduled and becomes queued at its time",
    replace: ({ jobs }) => ({
      jobs: {
        submit: async (batch, author) =>
          jobs.submit(
            batch.map((job) => ({ ...job, delayMs: 0 })),
            author,
          ),
      },
    }),
  },

  "hands a job out twice": {
    caughtBy: "a job is given out once, also when many ask at the same time",
    replace({ jobs }) {
      let last: ClaimedJob | undefined;
      return {
        jobs: {
          async claim(request) {
            const claimed = await jobs.claim(request);
            const repeated = last ? [last] : [];
            last = claimed.jobs.at(-1);
            return { ...claimed, jobs: [...repeated, ...claimed.jobs].slice(0, request.limit) };
          },
        },
      };
    },
  },

  "takes from paused queues": {
    caughtBy: "a paused queue keeps its jobs, and resuming keeps their order",
    replace: ({ jobs, queues }) => ({
      jobs: {
        async claim(request) {
          const paused = (await queues.list()).filter((queue) => queue.paused);
          for (const queue of paused) await queues.setPaused(queue.name, false);
          const claimed = await jobs.claim(request);
          for (const queue of paused) await queues.setPaused(queue.name, true);
          return claimed;
        },
      },
    }),
  },

  "gives out jobs of tasks that the claimant does not know": {
    caughtBy: "a job of an unknown task stays, blocks nobody, and is found by who knows it",
    replace: ({ jobs }) => ({
      jobs: { claim: (request) => jobs.claim({ ...request, tasks: new Anything() }) },
    }),
  },

  "takes from queues that are excepted": {
    caughtBy: "queues that are excepted are left alone, also when they were asked for",
    replace: ({ jobs }) => ({
      jobs: { claim: (request) => jobs.claim({ ...request, exceptQueues: new Set() }) },
    }),
  },

  "lets a queue that was asked for be excepted in vain": {
    caughtBy: "queues that are excepted are left alone, also when they were asked for",
    replace: ({ jobs }) => ({
      jobs: {
        claim: (request) =>
          jobs.claim({ ...request, exceptQueues: request.queues ? new Set() : request.exceptQueues }),
      },
    }),
  },

  "lets jobs of unknown tasks block the others": {
    caughtBy: "a job of an unknown task stays, blocks nobody, and is found by who knows it",
    replace: ({ jobs }) => ({
      jobs: {
        async claim(request) {
          const claimed = await jobs.claim({ ...request, tasks: new Anything() });
          const foreign = claimed.jobs.filter((job) => !request.tasks.has(job.task));
          await jobs.settle(foreign.map((run) => ({ run, outcome: { kind: "released" } })));
          return { ...claimed, jobs: claimed.jobs.filter((job) => request.tasks.has(job.task)) };
        },
      },
    }),
  },

  "gives out several suspects at once": {
    caughtBy:
      "a job that one more crash would quarantine is given out only to who asks for a suspect, one at a time",
    replace: ({ jobs }) => ({
      jobs: {
        async claim(request) {
          const first = await jobs.claim(request);
          const rest = { ...request, limit: request.limit - first.jobs.length };
          const second = await jobs.claim(rest);
          return { ...second, jobs: [...first.jobs, ...second.jobs] };
        },
      },
    }),
  },

  "puts a retried job at the end of the line without its delay": {
    caughtBy: "a failure that may be retried is counted and waits for its delay",
    replace: ({ jobs }) => ({
      jobs: {
        settle: async (batch) =>
          jobs.settle(
            batch.map(({ run, outcome }) => ({
              run,
              outcome: outcome.kind === "retry" ? { ...outcome, delayMs: 0 } : outcome,
            })),
          ),
      },
    }),
  },

  "counts pages by their offset": {
    caughtBy: "a list goes on where it was while jobs arrive, run and leave",
    replace({ jobs }) {
      const list: JobStore["list"] = async ({ cursor, limit, ...filter }) => {
        const from = Number(cursor ?? 0);
        const all = await jobs.list({ ...filter, limit: from + limit });
        return { jobs: all.jobs.slice(from), cursor: all.cursor === null ? null : `${from + limit}` };
      };
      return { jobs: { list } };
    },
  },

  "removes a job and keeps its logs": {
    caughtBy: "a removed job is gone with its logs and its place in line",
    replace({ jobs }) {
      const kept = new Map<string, Awaited<ReturnType<JobStore["logs"]>>>();
      return {
        jobs: {
          async remove(id) {
            kept.set(id, await jobs.logs(id, 0, 10));
            return jobs.remove(id);
          },
          async logs(id, after, limit) {
            const lines = await jobs.logs(id, after, limit);
            return lines.length > 0 ? lines : (kept.get(id) ?? lines);
          },
        },
      };
    },
  },

  "lets a completed job be retried by hand": {
    caughtBy: "jobs that wait, run or are completed are not retried by hand",
    replace: ({ jobs }) => ({
      jobs: {
        async retry(id) {
          const answer = await jobs.retry(id);
          return answer === "completed" ? "retried" : answer;
        },
      },
    }),
  },
};
