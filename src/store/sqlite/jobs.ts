import type { Budgets, Job, JobStatus } from "../../core/job.ts";
import type { JobId, LeaseId } from "../../core/ids.ts";
import type { Term } from "../../core/term.ts";
import { authorUnder } from "../fence.ts";
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
  Report,
  Retention,
  Settlement,
  Submitted,
  Verdict,
} from "../store.ts";
import { Claim } from "./claim.ts";
import type { Ledger } from "./ledger.ts";
import { List } from "./list.ts";
import type { Read } from "./read.ts";
import { Recover } from "./recover.ts";
import { Settle } from "./settle.ts";
import { Steer } from "./steer.ts";
import type { Submit } from "./submit.ts";
import type { SqliteTerms } from "./terms.ts";

/** The job port: each call is one operation in the file's group commit. */
export class SqliteJobs implements JobStore {
  readonly #ledger: Ledger;
  readonly #terms: SqliteTerms;
  readonly #submit: Submit;
  readonly #claim: Claim;
  readonly #settle: Settle;
  readonly #recover: Recover;
  readonly #steer: Steer;
  readonly #read: Read;
  readonly #list: List;

  constructor(parts: { ledger: Ledger; terms: SqliteTerms; submit: Submit; read: Read }) {
    this.#ledger = parts.ledger;
    this.#terms = parts.terms;
    this.#submit = parts.submit;
    this.#read = parts.read;
    this.#list = new List(parts.ledger, parts.read);
    this.#claim = new Claim(parts.ledger);
    this.#settle = new Settle(parts.ledger);
    this.#recover = new Recover(parts.ledger, this.#settle);
    this.#steer = new Steer(parts.ledger);
  }

  submit(
    jobs: readonly NewJob[],
    author: Author,
    _wakes = false,
    fence?: Term,
  ): Promise<readonly Submitted[]> {
    return this.#write(() => this.#submit.run(jobs, authorUnder(author, fence)), fence);
  }

  claim(request: ClaimRequest): Promise<Claimed> {
    const { author, fence } = request;
    const claimed = fence ? { ...request, author: authorUnder(author, fence) } : request;
    return this.#write(() => this.#claim.run(claimed), fence);
  }

  settle(settlements: readonly Settlement[], fence?: Term): Promise<readonly Verdict[]> {
    return this.#write(() => this.#settle.run(settlements, fence?.epoch), fence);
  }

  report(reports: readonly Report[], fence?: Term): Promise<readonly Verdict[]> {
    return this.#write(() => this.#settle.report(reports, fence?.epoch), fence);
  }

  renew(lease: LeaseId, ttlMs: number, fence?: Term): Promise<Renewal> {
    return this.#write(() => {
      const ledger = this.#ledger;
      if (!ledger.prolongLease(lease, ledger.clock.now() + ttlMs)) return { held: false, cancelled: [] };
      const cancelled: { id: JobId; jobEpoch: number; reason: string | null }[] = [];
      for (const [seq, reason] of ledger.cancelWishes) {
        const run = ledger.running.get(seq);
        if (run?.lease === lease)
          cancelled.push({ id: this.#read.idOf(seq), jobEpoch: run.jobEpoch, reason });
      }
      return { held: true, cancelled };
    }, fence);
  }

  recover(which: Abandoned, budgets: Budgets, fence: Term): Promise<readonly Recovered[]> {
    return this.#write(() => this.#recover.run(which, budgets, fence.epoch), fence);
  }

  cancel(id: JobId, reason: string | null): Promise<CancelAnswer> {
    return this.#write(() => this.#steer.cancel(id, reason));
  }

  retry(id: JobId): Promise<JobStatus | "missing" | "retried"> {
    return this.#write(() => this.#steer.retry(id));
  }

  remove(id: JobId): Promise<"removed" | "running" | "missing"> {
    return this.#write(() => this.#steer.remove(id));
  }

  purge(retention: Retention, limit: number, fence: Term): Promise<number> {
    return this.#write(() => this.#steer.purge(retention, limit), fence);
  }

  async get(id: JobId): Promise<Job | null> {
    return this.#ledger.file.read(() => this.#read.get(id));
  }

  async result(id: JobId): Promise<string | null> {
    return this.#ledger.file.read(() => this.#read.result(id));
  }

  async list(query: JobQuery): Promise<JobPage> {
    return this.#ledger.file.read(() => this.#list.whole(query));
  }

  async brief(query: JobQuery): Promise<BriefPage> {
    return this.#ledger.file.read(() => this.#list.brief(query));
  }

  async runs(id: JobId): Promise<JobRuns> {
    return this.#ledger.file.read(() => ({ past: this.#read.pastRuns(id), assignments: [] }));
  }

  async timings(limit: number, withinMs: number): Promise<readonly JobTiming[]> {
    return this.#ledger.file.read(() => this.#read.timings(limit, withinMs));
  }

  async logs(id: JobId, after: number, limit: number): Promise<readonly LogLine[]> {
    return this.#ledger.file.read(() => this.#read.logs(id, after, limit));
  }

  #write<T>(operation: () => T, fence?: Term): Promise<T> {
    return this.#ledger.file.write(() => {
      if (fence) this.#terms.check(fence);
      return operation();
    });
  }
}
