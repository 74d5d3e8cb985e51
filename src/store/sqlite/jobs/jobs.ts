/** The jobs of a SQLite store: each write is one operation in the file's group commit. */

import type { JobId } from "../../../core/ids.ts";
import type { Term } from "../../../core/leadership/term.ts";
import { authorUnder, type JobStore } from "../../jobs.ts";
import { Claim } from "./claim.ts";
import type { StoreCache } from "./store-cache.ts";
import { jobList } from "./list.ts";
import type { Read } from "./read.ts";
import { recovery } from "./recover.ts";
import { Settle } from "./settle.ts";
import type { Control } from "./control.ts";
import type { Submit } from "./submit.ts";
import type { SqliteScripts } from "../scripts.ts";

export function sqliteJobs(parts: {
  readonly cache: StoreCache;
  readonly scripts: SqliteScripts;
  readonly control: Control;
  readonly submit: Submit;
  readonly read: Read;
}): JobStore {
  const { cache, scripts, submit, read, control } = parts;
  const { file } = cache;
  const list = jobList(cache, read);
  const claim = new Claim(cache);
  const settle = new Settle(cache);
  const recover = recovery(cache, settle);
  const write = <T>(operation: () => T, fence?: Term): Promise<T> => scripts.transaction(operation, fence);
  return {
    submit: (jobs, author, _wakes, fence, apart) =>
      write(() => submit.run(jobs, authorUnder(author, fence), { apart }), fence),
    claim: (request) => {
      const { author, fence } = request;
      const claimed = fence ? { ...request, author: authorUnder(author, fence) } : request;
      return write(() => claim.run(claimed), fence);
    },
    record: ({ reports, settlements }, fence) =>
      write(() => {
        const reported = settle.report(reports, fence?.epoch);
        return { reported, settled: settle.run(settlements, fence?.epoch) };
      }, fence),
    renew: (lease, ttlMs, fence) =>
      write(() => {
        if (!cache.prolongLease(lease, ttlMs)) return { held: false, cancelled: [] };
        const cancelled: { id: JobId; jobEpoch: number; reason: string | null }[] = [];
        for (const [seq, reason] of cache.cancelRequests) {
          const run = cache.running.get(seq);
          if (run?.lease === lease) cancelled.push({ id: read.idOf(seq), jobEpoch: run.jobEpoch, reason });
        }
        return { held: true, cancelled };
      }, fence),
    recover: (which, budgets, fence) => write(() => recover(which, budgets, fence.epoch), fence),
    cancel: (id, reason) => write(() => control.cancel(id, reason)),
    retry: (id) => write(() => control.retry(id)),
    remove: (id) => write(() => control.remove(id)),
    get: async (id) => file.read(() => read.get(id)),
    result: async (id) => file.read(() => read.result(id)),
    list: (async (query, brief) => file.read(() => list(query, brief))) as JobStore["list"],
    runs: async (id) => file.read(() => ({ past: read.pastRuns(id), assignments: [] })),
    timings: async (limit, withinMs) => file.read(() => read.timings(limit, withinMs)),
    logs: async (id, after, limit) => file.read(() => read.logs(id, after, limit)),
  };
}
