/**
 * The order in which jobs are claimed. Candidates come from up to four sources, each already in order:
 *
 *   the log      fresh jobs behind the head
 *   the line     jobs in `live` that any worker may take (delayed ones that are due, retries, other priorities)
 *   the lanes    jobs that an earlier claimant had to skip: one lane for each queue and task
 *   suspects     jobs that one more crash would put into quarantine
 *
 * They are merged by priority, due time and arrival; candidates that are not taken stay where they are.
 *
 * Invariant: a fresh job behind the head has no row in `live`, and a job before it has one, or is done. So fresh jobs
 * are taken as a prefix of the log, and jobs that are skipped within that prefix are put into their lane.
 */

import type { JobId } from "../../../core/ids.ts";
import { takesFrom } from "../../../core/push/dispatch.ts";
import type { Claimed, ClaimedJob, ClaimRequest } from "../../store.ts";
import type { Kind } from "../../job-row.ts";
import { endsBy, type StoreCache } from "./store-cache.ts";

type NotClaimed = "lease" | "ref" | "task" | "queue" | "leaderEpoch" | "trace" | "assignment";

interface Candidate extends Omit<ClaimedJob, NotClaimed> {
  readonly seq: number;
  readonly fresh: boolean;
  readonly kind: Kind;
  readonly trace: string | null;
}

type LogRow = [number, string, number, string, number, number | null, number, string | null];
type LiveRow = [...LogRow, number, number, number, number, number, number, number];

const LIVE_COLUMNS = `j.seq, j.id, j.kind, j.payload, j.max_attempts, j.timeout_ms, j.created_at, j.trace,
  l.priority, l.run_at, l.job_epoch, l.attempts, l.failures, l.interruptions, l.crashes`;
const IN_ORDER = "ORDER BY l.priority DESC, l.run_at, l.seq LIMIT ?";

/** Limits the duration of a claim after a long downtime. */
const PROMOTE_MAX = 5_000;

/** A million jobs of an unknown task must not block the event loop. */
const SCAN_MAX = 2_000;
/** With more lanes (one for each paused queue or unknown task) they take turns. */
const LANES_MAX = 200;

const SUSPECTS_MAX = 1_000;

interface Scan {
  readonly chosen: readonly Candidate[];
  /** After the first chosen one, and not for this claimant. */
  readonly passed: readonly Candidate[];
  /** False: there may be more for this claimant. */
  readonly exhausted: boolean;
}

export class Claim {
  readonly #cache: StoreCache;
  readonly #sql;

  constructor(cache: StoreCache) {
    this.#cache = cache;
    const { file } = cache;
    const arrays = (sql: string) => {
      const statement = file.prepare(sql);
      statement.setReturnArrays(true);
      return statement;
    };
    const live = (where: string) =>
      arrays(
        `SELECT ${LIVE_COLUMNS} FROM live l JOIN job j ON j.seq = l.seq WHERE l.status = 1 AND ${where} ${IN_ORDER}`,
      );
    this.#sql = {
      due: arrays(
        "SELECT l.seq, j.kind FROM live l JOIN job j ON j.seq = l.seq WHERE l.status = 0 AND l.run_at <= ? ORDER BY l.run_at, l.seq LIMIT ?",
      ),
      promote: file.prepare("UPDATE live SET status = 1, updated_at = ? WHERE seq = ?"),
      nextDue: arrays("SELECT run_at FROM live WHERE status = 0 ORDER BY run_at, seq LIMIT 1"),
      log: arrays(
        `SELECT seq, id, kind, payload, max_attempts, timeout_ms, created_at, trace FROM job
         WHERE seq > ? AND fresh = 1 ORDER BY seq LIMIT ?`,
      ),
      line: live("l.lane IS NULL AND l.suspect = 0"),
      lane: live("l.lane = ? AND l.lane IS NOT NULL AND l.suspect = 0"),
      suspects: live("l.suspect = 1"),
      park: file.prepare("UPDATE live SET lane = ? WHERE seq = ?"),
      parkFresh: file.prepare(
        `INSERT INTO live (seq, status, lane, priority, run_at, job_epoch, attempts, failures, interruptions, crashes, updated_at, author)
         SELECT seq, 1, ?, priority, created_at, 0, 0, 0, 0, 0, created_at, author FROM job WHERE seq = ?`,
      ),
      takeFresh: file.prepare(
        `INSERT OR IGNORE INTO live (seq, status, priority, run_at, job_epoch, attempts, failures, interruptions, crashes, updated_at, started_at, worker, lease, author)
         SELECT seq, 2, 0, created_at, 1, 1, 0, 0, 0, ?1, ?1, ?2, ?3, ?4 FROM job WHERE seq > ?5 AND seq <= ?6 AND fresh = 1`,
      ),
      take: file.prepare(
        `UPDATE live SET status = 2, lane = NULL, job_epoch = job_epoch + 1, attempts = attempts + 1, updated_at = ?1, started_at = ?1,
         worker = ?2, lease = ?3, author = ?4, progress = NULL, progress_message = NULL WHERE seq = ?5`,
      ),
    };
  }

  run(request: ClaimRequest): Claimed {
    const now = this.#cache.clock.now();
    this.#promote(now);
    const held = this.#cache.mayHold(request.lease, request.opens);
    if (!held || request.limit <= 0) return { jobs: [], held, nextDueInMs: this.#nextDueInMs(now) };
    const log = this.#fromLog(request);
    const line = this.#fromLine(request);
    const places = [log.chosen, line.chosen, ...this.#fromLanes(request)];
    if (request.suspect) places.push(this.#fromSuspects(request));
    const taken = merge(
      places.filter((place) => place.length > 0),
      request.limit,
    );
    // The lease is written only if it holds a job: an idle claimant that asks once a second causes no writes.
    const jobs = taken.length > 0 ? this.#take(taken, log.passed, request, now) : [];
    const more = jobs.length === 0 && !(log.exhausted && line.exhausted);
    return { jobs, held, nextDueInMs: more ? 0 : this.#nextDueInMs(now) };
  }

  #nextDueInMs(now: number): number | null {
    const next = this.#sql.nextDue.get() as unknown as [number] | undefined;
    return next ? Math.max(0, next[0] - now) : null;
  }

  #promote(now: number): void {
    const due = this.#sql.due.all(now, PROMOTE_MAX) as unknown as [number, number][];
    for (const [seq, kind] of due) {
      this.#sql.promote.run(now, seq);
      this.#cache.count(this.#cache.kind(kind).queue, "scheduled", "queued");
    }
  }

  #may(request: ClaimRequest, kind: Kind): boolean {
    return !this.#cache.paused.has(kind.queue) && takesFrom(request, kind);
  }

  /**
   * Moves jobs that this claimant may not take to a lane, so that the head can advance: at once while they are at the
   * head, otherwise together with the next job that is taken.
   */
  #fromLog(request: ClaimRequest): Scan {
    const cache = this.#cache;
    const chosen: Candidate[] = [];
    const passed: Candidate[] = [];
    let cursor = cache.head;
    for (let scanned = 0; scanned < SCAN_MAX && chosen.length < request.limit;) {
      const wanted = request.limit - chosen.length;
      const rows = this.#sql.log.all(cursor, wanted) as unknown as LogRow[];
      for (const row of rows) {
        const candidate = this.#freshJob(row);
        cursor = candidate.seq;
        if (this.#may(request, candidate.kind)) chosen.push(candidate);
        else if (chosen.length > 0) passed.push(candidate);
        else {
          this.#park(candidate);
          cache.moveHead(candidate.seq);
        }
      }
      if (chosen.length === 0) cache.moveHead(rows.length < wanted ? cache.lastSeq : cursor);
      if (rows.length < wanted) return { chosen, passed, exhausted: true };
      scanned += rows.length;
    }
    return { chosen, passed, exhausted: chosen.length > 0 };
  }

  #park(candidate: Candidate): void {
    this.#cache.lanes.add(candidate.kind);
    (candidate.fresh ? this.#sql.parkFresh : this.#sql.park).run(candidate.kind.id, candidate.seq);
  }

  #fromLine(request: ClaimRequest): Scan {
    for (let parked = 0; ;) {
      const rows = this.#sql.line.all(request.limit) as unknown as LiveRow[];
      const candidates = rows.map((row) => this.#waiting(row));
      const foreign = candidates.filter((candidate) => !this.#may(request, candidate.kind));
      for (const candidate of foreign) this.#park(candidate);
      parked += foreign.length;
      if (foreign.length === 0) return { chosen: candidates, passed: [], exhausted: true };
      if (parked >= SCAN_MAX) {
        return { chosen: candidates.filter((c) => !foreign.includes(c)), passed: [], exhausted: false };
      }
    }
  }

  #fromLanes(request: ClaimRequest): Candidate[][] {
    const { lanes } = this.#cache;
    const found: Candidate[][] = [];
    let looked = 0;
    for (const lane of [...lanes].filter((kind) => this.#may(request, kind))) {
      if (looked++ === LANES_MAX) break;
      const rows = this.#sql.lane.all(lane.id, request.limit) as unknown as LiveRow[];
      lanes.delete(lane);
      if (rows.length === 0) continue;
      lanes.add(lane); // at the end: the others come first if there are too many
      found.push(rows.map((row) => this.#waiting(row)));
    }
    return found;
  }

  /** Suspects are few, so they are skipped one by one. */
  #fromSuspects(request: ClaimRequest): Candidate[] {
    for (const row of this.#sql.suspects.iterate(SUSPECTS_MAX)) {
      const suspect = this.#waiting(row as unknown as LiveRow);
      if (this.#may(request, suspect.kind)) return [suspect];
    }
    return [];
  }

  #take(
    taken: readonly Candidate[],
    passed: readonly Candidate[],
    request: ClaimRequest,
    now: number,
  ): ClaimedJob[] {
    const cache = this.#cache;
    const lease = cache.holdLease(request.lease, request.leaseMs);
    const worker = cache.workerId(request.worker);
    const by = cache.authorId(request.author);
    const { leaderEpoch } = request.author;
    let lastFresh = 0;
    const jobs = taken.map((candidate): ClaimedJob => {
      if (candidate.fresh) lastFresh = candidate.seq;
      else this.#sql.take.run(now, worker, lease, by, candidate.seq);
      const jobEpoch = candidate.jobEpoch + 1;
      cache.running.set(candidate.seq, {
        queue: candidate.kind.queue,
        lease: request.lease,
        jobEpoch,
        endsBy: endsBy(now, candidate.timeoutMs),
      });
      return {
        id: candidate.id,
        jobEpoch,
        lease: request.lease,
        ref: candidate.seq,
        task: candidate.kind.task,
        queue: candidate.kind.queue,
        priority: candidate.priority,
        payload: candidate.payload,
        attempts: candidate.attempts + 1,
        failures: candidate.failures,
        interruptions: candidate.interruptions,
        crashes: candidate.crashes,
        maxAttempts: candidate.maxAttempts,
        timeoutMs: candidate.timeoutMs,
        createdAt: candidate.createdAt,
        runAt: candidate.runAt,
        leaderEpoch,
        trace: candidate.trace,
      };
    });
    if (lastFresh > 0) {
      // The fresh rows up to the last taken one are exactly those taken and those moved to a lane.
      for (const candidate of passed) if (candidate.seq < lastFresh) this.#park(candidate);
      const { changes } = this.#sql.takeFresh.run(now, worker, lease, by, cache.head, lastFresh);
      const fresh = taken.filter((candidate) => candidate.fresh).length;
      if (changes !== fresh) throw new Error(`${fresh} fresh jobs were chosen and ${String(changes)} taken`);
      cache.moveHead(lastFresh);
    }
    this.#countTaken(taken);
    return jobs;
  }

  #freshJob(row: LogRow): Candidate {
    const [seq, id, kind, payload, maxAttempts, timeoutMs, createdAt, trace] = row;
    return {
      seq,
      fresh: true,
      id: id as JobId,
      kind: this.#cache.kind(kind),
      payload,
      maxAttempts,
      timeoutMs,
      createdAt,
      priority: 0,
      runAt: createdAt,
      jobEpoch: 0,
      attempts: 0,
      failures: 0,
      interruptions: 0,
      crashes: 0,
      trace,
    };
  }

  #waiting(row: LiveRow): Candidate {
    const [, , , , , , , , priority, runAt, jobEpoch, attempts, failures, interruptions, crashes] = row;
    const spent = { jobEpoch, attempts, failures, interruptions, crashes };
    return { ...this.#freshJob(row as unknown as LogRow), fresh: false, priority, runAt, ...spent };
  }

  #countTaken(taken: readonly Candidate[]): void {
    const byQueue = new Map<string, number>();
    for (const { kind } of taken) byQueue.set(kind.queue, (byQueue.get(kind.queue) ?? 0) + 1);
    for (const [queue, by] of byQueue) this.#cache.count(queue, "queued", "processing", by);
  }
}

/** The order within a line is kept: the log is taken as a prefix. */
function merge(places: readonly (readonly Candidate[])[], limit: number): readonly Candidate[] {
  if (places.length === 1 && places[0]!.length <= limit) return places[0]!;
  const next = places.map(() => 0);
  const merged: Candidate[] = [];
  while (merged.length < limit) {
    let best = -1;
    for (let i = 0; i < places.length; i++) {
      const candidate = places[i]![next[i]!];
      if (candidate && (best < 0 || inOrder(candidate, places[best]![next[best]!]!) < 0)) best = i;
    }
    if (best < 0) break;
    merged.push(places[best]![next[best]!++]!);
  }
  return merged;
}

function inOrder(a: Candidate, b: Candidate): number {
  return b.priority - a.priority || a.runAt - b.runAt || a.seq - b.seq;
}
