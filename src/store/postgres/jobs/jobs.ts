/** The jobs of a PostgreSQL store: each call is one statement or one transaction. */

import { hasCode } from "../../../core/errors.ts";
import type { Postgres } from "../../../platform/drivers/postgres/postgres.ts";
import type { JobStore } from "../../jobs.ts";
import { Claim } from "./claim/claim.ts";
import type { StoreCache } from "./store-cache.ts";
import { List } from "./list.ts";
import { PastRuns } from "./past-runs.ts";
import { Read } from "./read.ts";
import { Recover } from "./recover.ts";
import type { Report } from "./report.ts";
import { Control } from "./control.ts";
import type { Submit } from "./submit.ts";
import { SubmitWithin } from "./submit-in-transaction.ts";
import type { PostgresTerms } from "../terms.ts";

export interface PostgresJobsParts {
  readonly cache: StoreCache;
  readonly terms: PostgresTerms;
  readonly submit: Submit;
  readonly report: Report;
  readonly renewals: Pick<Postgres, "query">;
}

export function postgresJobs(parts: PostgresJobsParts): JobStore {
  const { cache, terms, submit, report, renewals } = parts;
  const submitWithin = new SubmitWithin(cache);
  const claim = new Claim(cache, terms);
  const recover = new Recover(cache, terms, renewals);
  const control = new Control(cache);
  const read = new Read(cache);
  const list = new List(cache);
  const past = new PastRuns(cache);
  /** Two calls use two connections, and the second may be faster. */
  const reporting = new Set<Promise<unknown>>();
  return {
    submit: (jobs, author, wakes = false, fence) => submit.run(jobs, author, wakes, fence),
    submitWithin: (client, jobs, author) => submitWithin.run(client, jobs, author),
    claim: (request) => claim.run(request),
    record: async (batch, fence) => {
      // After the reports in progress, and not if one of them fails: a run that has ended cannot report any more.
      if (batch.settlements.length > 0 && reporting.size > 0) await Promise.all(reporting);
      const recording = report.record(batch, fence);
      if (batch.reports.length === 0) return recording;
      // A report under an old term has written nothing, and must not fail the settlements of others.
      const over = fence ? recording.catch(unlessStale) : recording;
      reporting.add(over);
      try {
        return await recording;
      } finally {
        reporting.delete(over);
      }
    },
    renew: (lease, ttlMs, fence) => recover.renew(lease, ttlMs, fence),
    recover: (which, budgets, fence) => recover.run(which, budgets, fence),
    cancel: (id, reason) => control.cancel(id, reason),
    retry: (id) => control.retry(id),
    remove: (id) => control.remove(id),
    get: (id) => read.get(id),
    result: (id) => read.result(id),
    list: ((query, brief) => list.page(query, brief)) as JobStore["list"],
    runs: (id) => past.of(id),
    timings: (limit, withinMs) => read.timings(limit, withinMs),
    logs: (id, after, limit) => read.logs(id, after, limit),
  };
}

function unlessStale(error: unknown): void {
  if (!hasCode(error, "STALE_EPOCH")) throw error;
}
