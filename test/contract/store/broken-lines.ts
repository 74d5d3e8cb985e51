import type { ClaimedJob, JobStore, Submitted } from "../../../src/store/store.ts";
import { type BrokenStores, IN_HISTORIES, claims, inJobs, submits, writes } from "./broken-row.ts";

/** A set that has everything. */
class Anything extends Set<string> {
  override has(): boolean {
    return true;
  }
}

/** About what is taken in, in which order it is given out, and how it is listed. */
export const BROKEN_LINES: BrokenStores = {
  "loses the second job of a batch": [
    "a large batch is answered and kept in its order",
    inJobs(({ jobs }) => ({
      async submit(batch, author) {
        const answers = await jobs.submit(batch, author);
        if (answers[1] && !answers[1].existed) await jobs.remove(answers[1].id);
        return answers;
      },
    })),
  ],
  "stores a batch job by job": [
    "a batch that cannot be stored as a whole stores nothing",
    inJobs(({ jobs }) => ({
      async submit(batch, author) {
        const answers: Submitted[] = [];
        for (const job of batch) answers.push(...(await jobs.submit([job], author)));
        return answers;
      },
    })),
  ],
  "runs delayed jobs at once": [IN_HISTORIES, submits((job) => ({ ...job, delayMs: 0 }))],
  "hands a job out twice": [
    "a job is given out once, also when many ask at the same time",
    inJobs(({ jobs }) => {
      let last: ClaimedJob | undefined;
      return {
        async claim(request) {
          const claimed = await jobs.claim(request);
          const repeated = last ? [last] : [];
          last = claimed.jobs.at(-1);
          return { ...claimed, jobs: [...repeated, ...claimed.jobs].slice(0, request.limit) };
        },
      };
    }),
  ],
  "takes from paused queues": [
    IN_HISTORIES,
    inJobs(({ jobs, queues }) => ({
      async claim(request) {
        const paused = (await queues.list()).filter((queue) => queue.paused);
        for (const queue of paused) await queues.setPaused(queue.name, false);
        const claimed = await jobs.claim(request);
        for (const queue of paused) await queues.setPaused(queue.name, true);
        return claimed;
      },
    })),
  ],
  "gives out jobs of tasks that the claimant does not know": [
    IN_HISTORIES,
    claims((request) => ({ ...request, tasks: new Anything() })),
  ],
  "takes from queues that are excepted": [
    IN_HISTORIES,
    claims((request) => ({ ...request, exceptQueues: new Set() })),
  ],
  "gives out several suspects at once": [
    "a job that one more crash would quarantine is given out only to who asks for a suspect, one at a time",
    inJobs(({ jobs }) => ({
      async claim(request) {
        const first = await jobs.claim(request);
        const second = await jobs.claim({ ...request, limit: request.limit - first.jobs.length });
        return { ...second, jobs: [...first.jobs, ...second.jobs] };
      },
    })),
  ],
  "puts a retried job at the end of the line without its delay": [
    IN_HISTORIES,
    writes({
      settle: ({ run, outcome }) =>
        outcome.kind === "retry" ? { run, outcome: { ...outcome, delayMs: 0 } } : { run, outcome },
    }),
  ],
  "counts pages by their offset": [
    "a list goes on where it was while jobs arrive, run and leave",
    inJobs(({ jobs }) => {
      const list: JobStore["list"] = async ({ cursor, limit, ...filter }) => {
        const from = Number(cursor ?? 0);
        const all = await jobs.list({ ...filter, limit: from + limit });
        return { jobs: all.jobs.slice(from), cursor: all.cursor === null ? null : `${from + limit}` };
      };
      return { list };
    }),
  ],
  "removes a job and keeps its logs": [
    "a removed job is gone with its logs and its place in line",
    inJobs(({ jobs }) => {
      const kept = new Map<string, Awaited<ReturnType<JobStore["logs"]>>>();
      return {
        async remove(id) {
          kept.set(id, await jobs.logs(id, 0, 10));
          return jobs.remove(id);
        },
        async logs(id, after, limit) {
          const lines = await jobs.logs(id, after, limit);
          return lines.length > 0 ? lines : (kept.get(id) ?? lines);
        },
      };
    }),
  ],
  "lets a completed job be retried by hand": [
    "jobs that wait, run or are completed are not retried by hand",
    inJobs(({ jobs }) => ({
      async retry(id) {
        const answer = await jobs.retry(id);
        return answer === "completed" ? "retried" : answer;
      },
    })),
  ],
};
