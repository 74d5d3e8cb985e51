import { hasCode } from "../../core/errors.ts";
import type { Budgets, Job, JobStatus } from "../../core/job.ts";
import type { JobId, LeaseId } from "../../core/ids.ts";
import type { Term } from "../../core/term.ts";
import type { Postgres } from "../../platform/drivers/postgres.ts";
import type { JobRuns } from "../past-runs.ts";
import type {
  Abandoned,
  Author,
  BriefPage,
  CancelAnswer,
  Claimed,
  ClaimRequest,
  JobPage,
  JobQuery,
  JobTiming,
  JobStore,
  LogLine,
  NewJob,
  Recovered,
  Renewal,
  Report as RunReport,
  Retention,
  Settlement,
  Submitted,
  TransactionClient,
  Verdict,
} from "../store.ts";
import { Claim } from "./claim.ts";
import type { Ledger } from "./ledger.ts";
import { List } from "./list.ts";
import { PastRuns } from "./past-runs.ts";
import { Purge } from "./purge.ts";
import { Read } from "./read.ts";
import { Recover } from "./recover.ts";
import { Report } from "./report.ts";
import { Settle } from "./settle.ts";
import { Steer } from "./steer.ts";
import type { Submit } from "./submit.ts";
import { SubmitWithin } from "./submit-within.ts";
import type { PostgresTerms } from "./terms.ts";

/** The job port: each call is one statement or one transaction. */
export class PostgresJobs implements JobStore {
  readonly #submit: Submit;
  readonly #submitWithin: SubmitWithin;
  readonly #claim: Claim;
  readonly #settle: Settle;
  readonly #report: Report;
  readonly #recover: Recover;
  readonly #steer: Steer;
  readonly #purge: Purge;
  readonly #read: Read;
  readonly #list: List;
  readonly #past: PastRuns;
  /** Two calls take two connections, and the second may be the faster one. */
  readonly #reporting = new Set<Promise<unknown>>();

  constructor(parts: {
    ledger: Ledger;
    terms: PostgresTerms;
    submit: Submit;
    renewals: Pick<Postgres, "query">;
  }) {
    const { ledger, terms, submit, renewals } = parts;
    this.#submit = submit;
    this.#submitWithin = new SubmitWithin(ledger);
    this.#claim = new Claim(ledger, terms);
    this.#settle = new Settle(ledger, terms);
    this.#report = new Report(ledger, this.#settle, terms);
    this.#recover = new Recover(ledger, terms, renewals);
    this.#steer = new Steer(ledger);
    this.#purge = new Purge(ledger, terms);
    this.#read = new Read(ledger);
    this.#list = new List(ledger);
    this.#past = new PastRuns(ledger);
  }

  submit(
    jobs: readonly NewJob[],
    author: Author,
    wakes = false,
    fence?: Term,
  ): Promise<readonly Submitted[]> {
    return this.#submit.run(jobs, author, wakes, fence);
  }

  submitWithin(
    client: TransactionClient,
    jobs: readonly NewJob[],
    author: Author,
  ): Promise<readonly Submitted[]> {
    return this.#submitWithin.run(client, jobs, author);
  }

  claim(request: ClaimRequest): Promise<Claimed> {
    return this.#claim.run(request);
  }

  /** Behind the reports that are under way, and not if one of them fails: a run that has ended may report nothing more. */
  async settle(settlements: readonly Settlement[], fence?: Term): Promise<readonly Verdict[]> {
    if (this.#reporting.size > 0) await Promise.all(this.#reporting);
    return this.#settle.run(settlements, fence);
  }

  async report(reports: readonly RunReport[], fence?: Term): Promise<readonly Verdict[]> {
    const reported = this.#report.run(reports, fence);
    // One that came too late with its term has said nothing, and is nobody else's failure.
    const over = fence ? reported.catch(unlessStale) : reported;
    this.#reporting.add(over);
    try {
      return await reported;
    } finally {
      this.#reporting.delete(over);
    }
  }

  renew(lease: LeaseId, ttlMs: number, fence?: Term): Promise<Renewal> {
    return this.#recover.renew(lease, ttlMs, fence);
  }

  recover(which: Abandoned, budgets: Budgets, fence: Term): Promise<readonly Recovered[]> {
    return this.#recover.run(which, budgets, fence);
  }

  cancel(id: JobId, reason: string | null): Promise<CancelAnswer> {
    return this.#steer.cancel(id, reason);
  }

  retry(id: JobId): Promise<JobStatus | "missing" | "retried"> {
    return this.#steer.retry(id);
  }

  remove(id: JobId): Promise<"removed" | "running" | "missing"> {
    return this.#steer.remove(id);
  }

  purge(retention: Retention, limit: number, fence: Term): Promise<number> {
    return this.#purge.run(retention, limit, fence);
  }

  get(id: JobId): Promise<Job | null> {
    return this.#read.get(id);
  }

  result(id: JobId): Promise<string | null> {
    return this.#read.result(id);
  }

  list(query: JobQuery): Promise<JobPage> {
    return this.#list.whole(query);
  }

  brief(query: JobQuery): Promise<BriefPage> {
    return this.#list.brief(query);
  }

  runs(id: JobId): Promise<JobRuns> {
    return this.#past.of(id);
  }

  timings(limit: number, withinMs: number): Promise<readonly JobTiming[]> {
    return this.#read.timings(limit, withinMs);
  }

  logs(id: JobId, after: number, limit: number): Promise<readonly LogLine[]> {
    return this.#read.logs(id, after, limit);
  }
}

function unlessStale(error: unknown): void {
  if (!hasCode(error, "STALE_EPOCH")) throw error;
}
