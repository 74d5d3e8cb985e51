/**
 * Submits what an import source has, in batches. Each job has an idempotency key made of its queue, id and time there, so
 * an import that is run again goes on where it was and imports nothing twice.
 */

import { createHash } from "node:crypto";
import type { BatonClient, JobRequestBody } from "../../client/baton-client.ts";
import { CallError } from "../../client/client-error.ts";
import { count, sumOf } from "../../core/format-figures.ts";
import { THING_NAME } from "../../core/ids.ts";
import { IDEMPOTENCY_KEY_LENGTH_MAX } from "../../core/jobs/job-fields.ts";
import { asFailure, CliFailure } from "../failure.ts";
import { ProgressBar } from "../terminal/progress-bar.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { FoundJob, FoundSchedule, ImportSource } from "./import-source.ts";
import type { NewNames } from "./new-names.ts";

/** As JSON is printed. Without the figures of what was done in a dry run. */
export interface ImportResult {
  readonly source: ImportSource["kind"];
  readonly dry_run: boolean;
  readonly jobs: readonly ImportedJobs[];
  readonly schedules: readonly ImportedSchedule[];
  /** By queue there: what stays for the workers there. */
  readonly left: readonly { readonly from: string; readonly active: number; readonly flows: number }[];
  /** The first of those that were refused. */
  readonly refused: readonly { readonly from: string; readonly id: string; readonly message: string }[];
}

export interface ImportedJobs {
  readonly from: string;
  readonly queue: string;
  readonly task: string;
  found: number;
  imported: number;
  /** Imported by an earlier run. */
  existed: number;
  refused: number;
}

export interface ImportedSchedule {
  readonly from: string;
  readonly schedule: string;
  readonly task: string;
  readonly timing: string;
  /** `found` in a dry run. */
  readonly outcome: "found" | "imported" | "existed" | "refused";
  readonly message: string | null;
}

interface Prepared {
  readonly id: string;
  readonly job: JobRequestBody;
  readonly row: ImportedJobs;
}

/** Half of what a node takes in one request unless it is told otherwise (`http.body_limit`). */
const BATCH_CHARACTERS = 500_000;
const REFUSED_SHOWN_MAX = 1_000;

export class Importer {
  readonly #client: BatonClient;
  readonly #source: ImportSource;
  readonly #names: NewNames;
  readonly #dryRun: boolean;
  readonly #bar: ProgressBar;
  readonly #rows = new Map<string, ImportedJobs>();
  readonly #refused: { from: string; id: string; message: string }[] = [];
  readonly #total: number;
  #done = 0;

  constructor(
    terminal: Terminal,
    client: BatonClient,
    source: ImportSource,
    { names, dryRun }: { readonly names: NewNames; readonly dryRun: boolean },
  ) {
    this.#client = client;
    this.#source = source;
    this.#names = names;
    this.#dryRun = dryRun;
    this.#bar = new ProgressBar(terminal, dryRun ? "reading" : "importing");
    this.#total = sumOf(source.queues, ({ waiting }) => waiting);
  }

  async run(): Promise<ImportResult> {
    const { kind, queues } = this.#source;
    const left: ImportResult["left"][number][] = [];
    const schedules: ImportedSchedule[] = [];
    try {
      const known = new Set((await this.#client.schedules()).schedules.map(({ name }) => name));
      for (const { name: from, active, flows } of queues) {
        const inFlows = await this.#importJobs(from, known);
        left.push({ from, active, flows: flows + inFlows });
        for (const schedule of await this.#source.schedules(from)) {
          schedules.push(await this.#importSchedule(from, schedule, known));
        }
      }
    } catch (error) {
      throw this.#interrupted(error);
    } finally {
      this.#bar.clear();
    }
    const jobs = [...this.#rows.values()];
    return { source: kind, dry_run: this.#dryRun, jobs, schedules, left, refused: this.#refused };
  }

  /** Answers with how many jobs stay because they belong to a flow. */
  async #importJobs(from: string, schedules: ReadonlySet<string>): Promise<number> {
    let inFlows = 0;
    for await (const page of this.#source.jobs(from)) {
      const batch: Prepared[] = [];
      for (const found of page) {
        this.#done++;
        if (found.inFlow) inFlows++;
        else if (!isLeftToSchedule(found, schedules)) {
          const prepared = this.#prepare(from, found);
          if (prepared) batch.push(prepared);
        }
      }
      if (!this.#dryRun) for (const each of bySize(batch)) await this.#submit(each);
      this.#bar.show(this.#done, Math.max(this.#done, this.#total));
    }
    return inFlows;
  }

  #prepare(from: string, found: FoundJob): Prepared | null {
    const task = this.#names.taskOf(from, found.name);
    const queue = this.#names.queueOf(from);
    const row = this.#row(from, queue, task);
    row.found++;
    const { id, payload, priority, attempts: max_attempts, runAt } = found;
    const wrong = wrongName(from, found.name, queue, task);
    if (wrong !== null) {
      this.#refuse(id, row, wrong);
      return null;
    }
    const job: JobRequestBody = {
      task,
      queue,
      payload,
      priority,
      max_attempts,
      idempotency_key: this.#keyOf(from, found),
      // A job that has failed here is still over there, and would be run again by the next import.
      key_reuse: "never",
      // Its workers may be moved later.
      allow_unknown: true,
      ...(runAt !== null && { run_at: new Date(runAt).toISOString() }),
    };
    return { id, job, row };
  }

  #keyOf(from: string, { id, createdAt }: FoundJob): string {
    const key = `import:${this.#source.kind}:${from}:${id}:${createdAt}`;
    // An id may be any text there.
    if (key.length <= IDEMPOTENCY_KEY_LENGTH_MAX && !/\p{Cc}/u.test(key) && key.isWellFormed()) return key;
    return `import:${this.#source.kind}:${createHash("sha256").update(key).digest("hex")}`;
  }

  /** A batch with a job that is refused is halved until that job is alone, so that the others are taken. */
  async #submit(batch: readonly Prepared[]): Promise<void> {
    const [first] = batch;
    if (!first) return;
    const jobs = batch.map(({ job }) => job);
    try {
      const taken =
        batch.length === 1 ? [await this.#client.submit(first.job)] : await this.#client.submitMany(jobs);
      for (const [at, { existed }] of taken.entries()) batch[at]!.row[existed ? "existed" : "imported"]++;
    } catch (error) {
      if (!isAboutTheJobs(error)) throw error;
      if (batch.length === 1) return this.#refuse(first.id, first.row, asFailure(error).message);
      const middle = batch.length >> 1;
      await this.#submit(batch.slice(0, middle));
      await this.#submit(batch.slice(middle));
    }
  }

  async #importSchedule(
    from: string,
    found: FoundSchedule,
    known: ReadonlySet<string>,
  ): Promise<ImportedSchedule> {
    const { name: schedule, body, refused, note } = found;
    const task = this.#names.taskOf(from, found.job);
    const queue = this.#names.queueOf(from);
    const timing = body.cron ?? `every ${body.every_ms} ms`;
    const row = (outcome: ImportedSchedule["outcome"], message: string | null): ImportedSchedule => {
      return { from, schedule, task, timing, outcome, message };
    };
    if (refused !== null) return row("refused", refused);
    const wrong = THING_NAME.test(schedule)
      ? wrongName(from, found.job, queue, task)
      : "its name cannot be the name of a schedule here; add it with: baton schedules add";
    if (wrong !== null) return row("refused", wrong);
    // Somebody may have changed it here since.
    if (known.has(schedule)) return row("existed", null);
    if (this.#dryRun) return row("found", note);
    try {
      await this.#client.putSchedule({ name: schedule, task, queue, allow_unknown: true, ...body });
      return row("imported", note);
    } catch (error) {
      if (!isAboutTheJobs(error)) throw error;
      return row("refused", asFailure(error).message);
    }
  }

  #row(from: string, queue: string, task: string): ImportedJobs {
    const name = `${from}\n${task}`;
    let row = this.#rows.get(name);
    if (!row) {
      row = { from, queue, task, found: 0, imported: 0, existed: 0, refused: 0 };
      this.#rows.set(name, row);
    }
    return row;
  }

  #refuse(id: string, row: ImportedJobs, message: string): void {
    row.refused++;
    if (this.#refused.length < REFUSED_SHOWN_MAX) this.#refused.push({ from: row.from, id, message });
  }

  #interrupted(error: unknown): CliFailure {
    const { exitCode, message } = asFailure(error);
    const done = sumOf([...this.#rows.values()], ({ imported }) => imported);
    const hint = `${count(done)} jobs are imported; run the same command again, which goes on without doubles`;
    return new CliFailure(exitCode, message, hint);
  }
}

function bySize(jobs: readonly Prepared[]): readonly (readonly Prepared[])[] {
  const batches: Prepared[][] = [];
  let left = 0;
  for (const each of jobs) {
    const size = JSON.stringify(each.job).length;
    if (size > left) {
      batches.push([]);
      left = BATCH_CHARACTERS;
    }
    batches.at(-1)!.push(each);
    left -= size;
  }
  return batches;
}

/** A time that has come before the schedule was imported has no other who runs it. */
function isLeftToSchedule({ nextOf, runAt }: FoundJob, schedules: ReadonlySet<string>): boolean {
  return nextOf !== null && (runAt !== null || schedules.has(nextOf));
}

function wrongName(from: string, name: string, queue: string, task: string): string | null {
  if (!THING_NAME.test(queue)) {
    return `"${queue}" cannot be the name of a queue here; give it another with --queue '${from}=NAME'`;
  }
  if (THING_NAME.test(task)) return null;
  return `"${task}" cannot be the name of a task here; give it another with --task '${name}=NAME'`;
}

const STATUSES_ABOUT_JOBS: readonly (number | null)[] = [400, 409, 413, 422];

function isAboutTheJobs(error: unknown): boolean {
  return error instanceof CallError && STATUSES_ABOUT_JOBS.includes(error.status);
}
