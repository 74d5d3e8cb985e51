/**
 * All jobs in memory, and the queues in which they wait.
 *
 *   later                    scheduled jobs of all queues, by due time
 *   queue > task > fresh     due jobs, by priority, due time, arrival
 *                > suspects  the same for jobs that one more crash would put into quarantine
 *                > both again for jobs that were dispatched and that no worker has accepted yet
 *
 * A claim merges the heads of the queues from which it may take. Jobs that it cannot take (an unknown task, a paused
 * queue) are skipped as a whole, however many there are.
 */

import type { JobId, LeaseId, NodeName } from "../../../core/ids.ts";
import type { Job, JobStatus } from "../../../core/jobs/job.ts";
import { rareOf } from "../../../core/jobs/job-fields.ts";
import type { NodeIdentity } from "../../../core/node.ts";
import type { AssignmentId, Ownership } from "../../ownership.ts";
import { PAST_RUNS_MAX, type PastOutcome, type PastRun } from "../../past-runs.ts";
import type { Author, LogLine, NewJob, QueueInfo, Submitted } from "../../store.ts";
import { QueueOrder } from "./queue-order.ts";

export interface Entry {
  /** Replaced with each change and never altered, so that it can be given out as it is. */
  job: Job;
  readonly arrival: number;
  /** Of the last run; null when there was none, or when it was taken away from its claimant. */
  lease: LeaseId | null;
  cancelReason: string | null;
  suspect: boolean;
  result: string | null;
  readonly logs: LogLine[];
  readonly past: PastRun[];
  /** Only the ledger writes it: a job that is not marked and does not run is in none. */
  assignment: Assignment | null;
  place: number;
}

/** Jobs that were dispatched together, and who owns them. */
export interface Assignment {
  readonly id: AssignmentId;
  readonly createdAt: number;
  readonly jobs: Set<Entry>;
  owner: NodeIdentity | null;
  /** Who owned it last, or does. */
  last: NodeName | null;
  ownerEpoch: number;
  state: Ownership["state"];
  unownedSince: number;
  offeredAt: number | null;
}

interface Lines {
  readonly fresh: QueueOrder<Entry>;
  readonly suspects: QueueOrder<Entry>;
}

interface TaskLines {
  readonly waiting: Lines;
  readonly marked: Lines;
}

interface Queue {
  paused: boolean;
  readonly counts: Record<JobStatus, number>;
  readonly tasks: Map<string, TaskLines>;
}

export interface Wanted {
  readonly tasks: ReadonlySet<string>;
  readonly queues: ReadonlySet<string> | null;
  readonly exceptQueues: ReadonlySet<string>;
  readonly limit: number;
  readonly suspect: boolean;
  /** Passes over what has been dispatched already. */
  readonly unmarked?: boolean;
}

export class StoreCache {
  readonly #entries = new Map<JobId, Entry>();
  readonly #keys = new Map<string, Entry>();
  readonly #queues = new Map<string, Queue>();
  readonly #later = new QueueOrder<Entry>(dueBefore);
  #arrivals = 0;

  find(id: JobId): Entry | undefined {
    return this.#entries.get(id);
  }

  /** In the order of arrival. */
  entries(): Iterable<Entry> {
    return this.#entries.values();
  }

  add(wanted: NewJob, author: Author, schedule: string | null, now: number): Submitted {
    const key = wanted.idempotencyKey;
    const there = (key === null ? undefined : this.#keys.get(key)) ?? this.#entries.get(wanted.id);
    if (there) return { id: there.job.id, status: there.job.status, existed: true };

    const job = newJob(wanted, author, schedule, now);
    const entry: Entry = {
      job,
      arrival: ++this.#arrivals,
      lease: null,
      cancelReason: null,
      suspect: false,
      result: null,
      logs: [],
      past: [],
      assignment: null,
      place: -1,
    };
    this.#entries.set(job.id, entry);
    if (key !== null) this.#keys.set(key, entry);
    this.#enter(entry);
    return { id: job.id, status: job.status, existed: false };
  }

  /** The only way in which a stored job changes: it leaves its line and count, and enters those of its new state. */
  change(entry: Entry, fields: Partial<Job>, now: number, suspect = entry.suspect): void {
    this.#exit(entry);
    entry.job = { ...entry.job, ...fields, updatedAt: now };
    entry.suspect = suspect;
    if (entry.job.status !== "processing") leaveAssignment(entry);
    this.#enter(entry);
  }

  /** Puts a waiting job into an assignment, or out of the one it is in. That is no change of the job either. */
  mark(entry: Entry, assignment: Assignment | null): void {
    this.#exit(entry);
    leaveAssignment(entry);
    entry.assignment = assignment;
    assignment?.jobs.add(entry);
    this.#enter(entry);
  }

  /** Jobs that were dispatched and that nobody has accepted. */
  *marked(): Generator<Entry> {
    for (const { tasks } of this.#queues.values()) {
      for (const { marked } of tasks.values()) {
        yield* marked.fresh.members();
        yield* marked.suspects.members();
      }
    }
  }

  remove(entry: Entry): void {
    this.#exit(entry);
    leaveAssignment(entry);
    this.#entries.delete(entry.job.id);
    const key = entry.job.idempotencyKey;
    if (key !== null) this.#keys.delete(key);
  }

  /** Scheduled jobs whose time has come join the line. That is no change of the job, so `updatedAt` stays. */
  promote(now: number): void {
    for (let entry = this.#later.first; entry && entry.job.runAt <= now; entry = this.#later.first) {
      this.#exit(entry);
      entry.job = { ...entry.job, status: "queued" };
      this.#enter(entry);
    }
  }

  nextDueAt(): number | null {
    return this.#later.first?.job.runAt ?? null;
  }

  /** The jobs that a claimant may have, in order, one after the other: each must leave the line before the next. */
  *due(wanted: Wanted): Generator<Entry> {
    const lines = [...this.#lines(wanted)];
    let suspect = wanted.suspect;
    for (let taken = 0; taken < wanted.limit; taken++) {
      let next: Entry | undefined;
      for (const { fresh, suspects } of lines) {
        next = earlier(next, fresh.first);
        if (suspect) next = earlier(next, suspects.first);
      }
      if (!next) return;
      if (next.suspect) suspect = false;
      yield next;
    }
  }

  isPaused(queue: string): boolean {
    return this.#queues.get(queue)?.paused ?? false;
  }

  pause(queue: string, paused: boolean): void {
    this.#queue(queue).paused = paused;
  }

  queues(): readonly QueueInfo[] {
    return [...this.#queues]
      .map(([name, { paused, counts }]) => ({ name, paused, counts: { ...counts } }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  waitingSince(): Map<string, number> {
    const oldest = new Map<string, number>();
    for (const [name, { tasks }] of this.#queues) {
      for (const { waiting, marked } of tasks.values()) {
        for (const line of [waiting.fresh, waiting.suspects, marked.fresh, marked.suspects]) {
          for (const { job } of line.members()) {
            oldest.set(name, Math.min(oldest.get(name) ?? Infinity, job.runAt));
          }
        }
      }
    }
    return oldest;
  }

  *#lines({ tasks, queues, exceptQueues, unmarked = false }: Wanted): Generator<Lines> {
    for (const [name, queue] of this.#queues) {
      if (queue.paused || exceptQueues.has(name) || (queues && !queues.has(name))) continue;
      for (const [task, { waiting, marked }] of queue.tasks) {
        if (!tasks.has(task)) continue;
        yield waiting;
        if (!unmarked) yield marked;
      }
    }
  }

  #enter(entry: Entry): void {
    this.#queue(entry.job.queue).counts[entry.job.status]++;
    this.#line(entry)?.join(entry);
  }

  #exit(entry: Entry): void {
    this.#line(entry)?.leave(entry);
    this.#queue(entry.job.queue).counts[entry.job.status]--;
  }

  #line({ job, suspect, assignment }: Entry): QueueOrder<Entry> | null {
    if (job.status === "scheduled") return this.#later;
    if (job.status !== "queued") return null;
    const { tasks } = this.#queue(job.queue);
    let lines = tasks.get(job.task);
    if (!lines) tasks.set(job.task, (lines = { waiting: newLines(), marked: newLines() }));
    const { fresh, suspects } = assignment ? lines.marked : lines.waiting;
    return suspect ? suspects : fresh;
  }

  #queue(name: string): Queue {
    let queue = this.#queues.get(name);
    if (!queue) {
      const counts = { scheduled: 0, queued: 0, processing: 0, completed: 0, failed: 0, cancelled: 0 };
      this.#queues.set(name, (queue = { paused: false, counts, tasks: new Map() }));
    }
    return queue;
  }
}

/** A run that is over, before its job is changed. */
export function keepRun({ job, past }: Entry, outcome: PastOutcome, now: number, error = job.error): void {
  const { jobEpoch, worker, leaderEpoch, startedAt } = job;
  if (startedAt === null) return;
  past.push({ jobEpoch, worker, leaderEpoch, startedAt, endedAt: now, outcome, error });
  if (past.length > PAST_RUNS_MAX) past.shift();
}

/** As it is given out: a job in an assignment belongs to whoever owns that. */
export function shown({ job, assignment }: Entry): Job {
  if (!assignment?.owner) return job;
  return { ...job, owner: assignment.owner.name, ownerEpoch: assignment.ownerEpoch };
}

function leaveAssignment(entry: Entry): void {
  entry.assignment?.jobs.delete(entry);
  entry.assignment = null;
}

function newLines(): Lines {
  return { fresh: new QueueOrder(goesBefore), suspects: new QueueOrder(goesBefore) };
}

function newJob(wanted: NewJob, author: Author, schedule: string | null, now: number): Job {
  const runAt = wanted.runAt ?? now + wanted.delayMs;
  return {
    id: wanted.id,
    task: wanted.task,
    queue: wanted.queue,
    status: runAt > now ? "scheduled" : "queued",
    priority: wanted.priority,
    payload: wanted.payload,
    progress: null,
    progressMessage: null,
    attempts: 0,
    failures: 0,
    interruptions: 0,
    crashes: 0,
    maxAttempts: wanted.maxAttempts,
    timeoutMs: wanted.timeoutMs,
    idempotencyKey: wanted.idempotencyKey,
    trace: wanted.trace ?? null,
    schedule,
    cancelRequested: false,
    createdAt: now,
    updatedAt: now,
    runAt,
    startedAt: null,
    finishedAt: null,
    owner: author.node,
    worker: null,
    jobEpoch: 0,
    ownerEpoch: author.ownerEpoch,
    leaderEpoch: author.leaderEpoch,
    error: null,
    killed: [],
    ...rareOf(wanted),
  };
}

function dueBefore(a: Entry, b: Entry): boolean {
  return a.job.runAt !== b.job.runAt ? a.job.runAt < b.job.runAt : a.arrival < b.arrival;
}

function goesBefore(a: Entry, b: Entry): boolean {
  return a.job.priority !== b.job.priority ? a.job.priority > b.job.priority : dueBefore(a, b);
}

function earlier(a: Entry | undefined, b: Entry | undefined): Entry | undefined {
  if (!a || !b) return a ?? b;
  return goesBefore(b, a) ? b : a;
}
