/**
 * The cache of the SQLite store: small values that every hot statement would otherwise have to read. Only one process
 * opens the file, so memory and file agree; after a rollback everything is read again.
 */

import type { JobId, LeaseId } from "../../../core/ids.ts";
import type { JobStatus } from "../../../core/jobs/job.ts";
import type { Clock } from "../../../platform/clock.ts";
import { IN_MEMORY, type SqliteFile } from "../../../platform/drivers/sqlite/sqlite-file.ts";
import type { Author } from "../../store.ts";
import { type Counts, type JobRow, type Kind, kindKey, noJobs, STATUS, statusName } from "../../job-row.ts";
import { Numbered } from "../../numbered.ts";

export interface RunningJob {
  readonly queue: string;
  readonly lease: LeaseId;
  readonly jobEpoch: number;
  /** The end of its timeout; Infinity without one. */
  readonly endsBy: number;
}

/** The last 12 bits of a key (idKey) distinguish ids of the same millisecond. */
const KEYS_PER_MS = 0x1000;

export class StoreCache {
  readonly file: SqliteFile;
  readonly clock: Clock;
  /** In memory, where leases end with the process, a change of the wall clock must not end one. */
  readonly #leaseClock: () => number;

  /** Every fresh job up to here has been claimed or given a lane. */
  head = 0;
  lastSeq = 0;
  readonly running = new Map<number, RunningJob>();
  readonly cancelRequests = new Map<number, string | null>();
  readonly paused = new Set<string>();
  /** Lanes that may contain waiting jobs; an empty one is dropped when it is read. */
  readonly lanes = new Set<Kind>();
  readonly #kinds = new Numbered<Kind, Omit<Kind, "id">>(kindKey);
  readonly #leases = new Map<LeaseId, { readonly id: number; expiresAt: number }>();
  readonly #authors = new Numbered<Author>(
    ({ node, ownerEpoch, leaderEpoch }) => `${node}/${ownerEpoch}/${leaderEpoch}`,
  );
  readonly #workers = new Numbered<string>((name) => name);
  readonly #tally = new Map<string, Counts>();
  readonly #dirty = new Map<string, Set<JobStatus>>();
  #headMoved = false;
  #newestIdTime = 0;
  readonly #newestKeys = new Uint8Array(KEYS_PER_MS);

  readonly #sql;

  constructor(file: SqliteFile, clock: Clock) {
    this.file = file;
    this.clock = clock;
    this.#leaseClock = () => (file.path === IN_MEMORY ? Math.trunc(clock.monotonic()) : clock.now());
    this.#sql = {
      byKey: file.prepare("SELECT seq, id FROM job WHERE id_key = ?"),
      saveHead: file.prepare(
        "INSERT INTO cursor VALUES ('head', ?) ON CONFLICT DO UPDATE SET seq = excluded.seq",
      ),
      saveTally: file.prepare("INSERT INTO tally VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET n = excluded.n"),
      addKind: file.prepare("INSERT INTO kind (queue, task) VALUES (?, ?)"),
      addAuthor: file.prepare("INSERT INTO author (node, owner_epoch, leader_epoch) VALUES (?, ?, ?)"),
      addWorker: file.prepare("INSERT INTO worker (name) VALUES (?)"),
      addLease: file.prepare("INSERT INTO lease (name, expires_at) VALUES (?, ?)"),
      prolong: file.prepare("UPDATE lease SET expires_at = ? WHERE id = ?"),
      pause: file.prepare(
        "INSERT INTO queue VALUES (?, ?) ON CONFLICT DO UPDATE SET paused = excluded.paused",
      ),
      dropLease: file.prepare("DELETE FROM lease WHERE id = ?"),
      nextLane: file.prepare(
        "SELECT lane FROM live WHERE status = 1 AND lane IS NOT NULL AND suspect = 0 AND lane > ? ORDER BY lane LIMIT 1",
      ),
    };
    this.reload();
  }

  reload(): void {
    const all = (sql: string): JobRow[] => this.file.prepare(sql).all();
    this.#kinds.clear();
    for (const { id, queue, task } of all("SELECT id, queue, task FROM kind")) {
      this.#kinds.add(id, { id, queue, task });
    }
    this.head = Number(all("SELECT seq FROM cursor WHERE name = 'head'")[0]?.["seq"] ?? 0);
    // Jobs up to the head are not searched, so a number at or below it must not be used again.
    this.lastSeq = Math.max(this.head, Number(all("SELECT max(seq) AS seq FROM job")[0]?.["seq"] ?? 0));
    // The next id is assumed to be newer than everything in the file; if it is not, it is looked up.
    this.#newestKeys.fill(0);
    this.#newestIdTime =
      Math.floor(Number(all("SELECT max(id_key) AS key FROM job")[0]?.["key"] ?? 0) / KEYS_PER_MS) + 1;
    this.paused.clear();
    for (const { name } of all("SELECT name FROM queue WHERE paused = 1")) this.paused.add(name);
    this.#leases.clear();
    for (const { id, name, expires_at: expiresAt } of all("SELECT id, name, expires_at FROM lease")) {
      this.#leases.set(name, { id, expiresAt });
    }
    this.#authors.clear();
    for (const { id, node, ownerEpoch, leaderEpoch } of all(
      'SELECT id, node, owner_epoch AS "ownerEpoch", leader_epoch AS "leaderEpoch" FROM author',
    )) {
      this.#authors.add(id, { node, ownerEpoch, leaderEpoch });
    }
    this.#workers.clear();
    for (const { id, name } of all("SELECT id, name FROM worker")) this.#workers.add(id, name);
    this.running.clear();
    this.cancelRequests.clear();
    for (const row of all(
      `SELECT l.seq, l.job_epoch, l.cancel_requested, l.cancel_reason, l.started_at, e.name, j.kind, j.timeout_ms FROM live l
       JOIN job j ON j.seq = l.seq LEFT JOIN lease e ON e.id = l.lease WHERE l.status = 2`,
    )) {
      const lease = (row["name"] ?? "") as LeaseId;
      this.running.set(row["seq"], {
        queue: this.kind(row["kind"]).queue,
        lease,
        jobEpoch: row["job_epoch"],
        endsBy: endsBy(row["started_at"], row["timeout_ms"]),
      });
      if (row["cancel_requested"]) this.cancelRequests.set(row["seq"], row["cancel_reason"] ?? null);
    }
    this.#tally.clear();
    this.#dirty.clear();
    for (const { queue, status, n } of all("SELECT queue, status, n FROM tally")) {
      this.counts(queue)[statusName(status)] = n;
    }
    this.lanes.clear();
    for (let lane = this.#nextLane(0); lane !== null; lane = this.#nextLane(lane))
      this.lanes.add(this.kind(lane));
    this.#headMoved = false;
  }

  save(): void {
    if (this.#headMoved) {
      this.#sql.saveHead.run(this.head);
      this.#headMoved = false;
    }
    for (const [queue, statuses] of this.#dirty) {
      const counts = this.counts(queue);
      for (const status of statuses) this.#sql.saveTally.run(queue, STATUS[status], counts[status]);
    }
    this.#dirty.clear();
  }

  setPaused(queue: string, paused: boolean): void {
    this.#sql.pause.run(queue, paused ? 1 : 0);
    if (paused) this.paused.add(queue);
    else this.paused.delete(queue);
  }

  moveHead(seq: number): void {
    if (seq <= this.head) return;
    this.head = seq;
    this.#headMoved = true;
  }

  counts(queue: string): Counts {
    let counts = this.#tally.get(queue);
    if (!counts) this.#tally.set(queue, (counts = noJobs()));
    return counts;
  }

  tallies(): ReadonlyMap<string, Counts> {
    return this.#tally;
  }

  /** Null for a job that is created or removed. */
  count(queue: string, from: JobStatus | null, to: JobStatus | null, by = 1): void {
    const counts = this.counts(queue);
    let dirty = this.#dirty.get(queue);
    if (!dirty) this.#dirty.set(queue, (dirty = new Set()));
    if (from) {
      counts[from] -= by;
      dirty.add(from);
    }
    if (to) {
      counts[to] += by;
      dirty.add(to);
    }
  }

  seqOf(id: JobId): number | null {
    for (const row of this.#sql.byKey.all(idKey(id))) if (row["id"] === id) return row["seq"] as number;
    return null;
  }

  /**
   * An id is certainly new if its time is later than that of all others; within one millisecond the known keys are
   * marked. Nothing is read.
   */
  surelyNew(key: number): boolean {
    const at = Math.floor(key / KEYS_PER_MS);
    if (at < this.#newestIdTime) return false;
    if (at > this.#newestIdTime) {
      this.#newestKeys.fill(0);
      this.#newestIdTime = at;
    }
    const rest = key - at * KEYS_PER_MS;
    const fresh = this.#newestKeys[rest] === 0;
    this.#newestKeys[rest] = 1;
    return fresh;
  }

  kind(id: number): Kind {
    return this.#kinds.get(id)!;
  }

  kinds(): readonly Kind[] {
    return this.#kinds.all();
  }

  kindId(queue: string, task: string): number {
    const known = this.#kinds.idOf({ queue, task });
    if (known !== undefined) return known;
    const id = Number(this.#sql.addKind.run(queue, task).lastInsertRowid);
    return this.#kinds.add(id, { id, queue, task });
  }

  /** Writers repeat in many rows, so a row contains one number for name and epochs. */
  authorId(author: Author): number {
    const { node, ownerEpoch, leaderEpoch } = author;
    return (
      this.#authors.idOf(author) ??
      this.#authors.add(
        Number(this.#sql.addAuthor.run(node, ownerEpoch, leaderEpoch).lastInsertRowid),
        author,
      )
    );
  }

  author(id: number): Author {
    return this.#authors.get(id)!;
  }

  workerId(name: string): number {
    return (
      this.#workers.idOf(name) ??
      this.#workers.add(Number(this.#sql.addWorker.run(name).lastInsertRowid), name)
    );
  }

  workerName(id: number | null): string | null {
    return id === null ? null : (this.#workers.get(id) ?? null);
  }

  /**
   * A missing or expired lease is opened only for a claimant without runs: a claim must not revive an expired lease
   * with jobs.
   */
  mayHold(name: LeaseId, opens: boolean): boolean {
    if (!this.leaseExpired(name)) return true;
    return opens && !(this.#leases.has(name) && this.#holdsJobs(name));
  }

  holdLease(name: LeaseId, ttlMs: number): number {
    const expiresAt = this.#leaseClock() + ttlMs;
    const known = this.#leases.get(name);
    if (known) {
      if (expiresAt > known.expiresAt) this.#prolong(known, expiresAt);
      return known.id;
    }
    const id = Number(this.#sql.addLease.run(name, expiresAt).lastInsertRowid);
    this.#leases.set(name, { id, expiresAt });
    return id;
  }

  prolongLease(name: LeaseId, ttlMs: number): boolean {
    const known = this.#leases.get(name);
    if (!known || this.leaseExpired(name)) return false;
    this.#prolong(known, this.#leaseClock() + ttlMs);
    return true;
  }

  leaseId(name: LeaseId): number | null {
    return this.#leases.get(name)?.id ?? null;
  }

  leaseNames(): IterableIterator<LeaseId> {
    return this.#leases.keys();
  }

  leaseExpired(name: LeaseId): boolean {
    const known = this.#leases.get(name);
    return !known || known.expiresAt <= this.#leaseClock();
  }

  dropLease(name: LeaseId): void {
    const known = this.#leases.get(name);
    if (!known) return;
    this.#sql.dropLease.run(known.id);
    this.#leases.delete(name);
  }

  #holdsJobs(name: LeaseId): boolean {
    for (const run of this.running.values()) if (run.lease === name) return true;
    return false;
  }

  #prolong(lease: { id: number; expiresAt: number }, expiresAt: number): void {
    this.#sql.prolong.run(expiresAt, lease.id);
    lease.expiresAt = expiresAt;
  }

  #nextLane(after: number): number | null {
    return (this.#sql.nextLane.get(after)?.["lane"] as number | undefined) ?? null;
  }
}

export function endsBy(startedAt: number, timeoutMs: number | null): number {
  return timeoutMs === null ? Infinity : startedAt + timeoutMs;
}

/**
 * A narrow index key for an id: 41 bits of its time and the 12 that follow, so that it stays a safe integer. Not
 * unique; the id is compared afterwards. Half the cost of indexing the text.
 */
export function idKey(id: JobId): number {
  const at = id.length - 36;
  let key = 0;
  for (let i = at; i < at + 18; i++) {
    const code = id.charCodeAt(i);
    if (code === DASH || i === at + VERSION) continue;
    key = key * 16 + (code < A ? code - ZERO : code - A + 10);
  }
  return key % 2 ** 53;
}

const DASH = 45;
const ZERO = 48;
const A = 97;
/** The same in all our uuids, so it is skipped. */
const VERSION = 14;
