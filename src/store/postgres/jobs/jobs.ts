/** The jobs of a PostgreSQL store: each call is one statement or one transaction. */

import { hasCode } from "../../../core/errors.ts";
import type { Postgres } from "../../../platform/drivers/postgres/postgres.ts";
import type { JobStore } from "../../jobs.ts";
import type { PostgresScripts } from "../scripts.ts";
import { Claim } from "./claim/claim.ts";
import { jobControl } from "./control.ts";
import { jobList } from "./list.ts";
import { jobReads } from "./read.ts";
import { jobRecovery } from "./recover.ts";
import type { Report } from "./report.ts";
import type { Slots } from "./slots.ts";
import type { StoreCache } from "./store-cache.ts";
import { submitInTransaction } from "./submit-in-transaction.ts";
import type { Submit } from "./submit.ts";

export function postgresJobs(parts: {
  readonly cache: StoreCache;
  readonly scripts: PostgresScripts;
  readonly submit: Submit;
  readonly slots: Slots;
  readonly report: Report;
  readonly renewals: Postgres;
}): JobStore {
  const { cache, scripts, submit, slots, report, renewals } = parts;
  const claim = new Claim(cache, scripts);
  /** Two calls use two connections, and the second may be faster. */
  const reporting = new Set<Promise<unknown>>();
  return {
    submit: (jobs, author, wakes = false, fence, apart) => submit.run(jobs, author, wakes, fence, apart),
    submitWithin: submitInTransaction(cache),
    claim: (request) => claim.run(request),
    slots,
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
    ...jobRecovery(cache, scripts, renewals),
    ...jobControl(cache, scripts),
    ...jobReads(cache),
    list: jobList(cache),
  };
}

function unlessStale(error: unknown): void {
  if (!hasCode(error, "STALE_EPOCH")) throw error;
}
