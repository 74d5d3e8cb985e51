/**
 * One SQLite file, one writer process, group commit.
 *
 * - The file is locked while it is open (`locking_mode = EXCLUSIVE`): two processes on one file would wait for each other in the busy handler
 *   (p95 18 ms instead of 0.9 ms, measured), and the lock also proves that an earlier process has ended.
 * - Writes that arrive in one turn of the event loop share a transaction and its fsync.
 * - `synchronous = FULL`: a resolved write survives power loss.
 * - `:memory:` keeps everything in memory until `close`. A write is then a transaction of its own within the call.
 *
 * An operation decides before it writes: it may throw a BatonError only while it has changed nothing; the others of its group still commit.
 * Any other error rolls the group back, and each operation is tried again alone: it may run twice, and must depend only on stored data.
 */

import { closeSync, constants, fchmodSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { BatonError, reasonOf } from "../../../core/errors.ts";
import type { Clock } from "../../clock.ts";

export interface SqliteHooks {
  readonly beforeCommit?: () => void;
  /** What was kept in memory next to the file no longer fits it. */
  readonly afterRollback?: () => void;
}

interface Pending {
  readonly operation: () => unknown;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

export const IN_MEMORY = ":memory:";

const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_NOTADB = 26;

export class SqliteFile {
  readonly path: string;
  readonly #clock: Pick<Clock, "turn">;
  readonly #db: DatabaseSync;
  #hooks: SqliteHooks = {};
  #pending: Pending[] = [];
  #scheduled = false;
  #closed = false;
  /** After a failed fsync it is unknown what is on the disk: no more writes, whatever a second try would say. */
  #broken: BatonError | null = null;

  /** `db`: in place of the file at `path`, for a simulation; it is closed with this. */
  constructor(path: string, clock: Pick<Clock, "turn">, db = openDatabase(path)) {
    this.path = path;
    this.#clock = clock;
    try {
      db.exec("PRAGMA locking_mode = EXCLUSIVE");
      db.exec("PRAGMA journal_mode = WAL");
      db.exec("PRAGMA synchronous = FULL");
      db.exec("PRAGMA foreign_keys = OFF");
      db.exec("PRAGMA cache_size = -65536"); // 64 MiB: the hot tables of a busy node
      db.exec("PRAGMA wal_autocheckpoint = 4000"); // pages, 16 MiB: smaller checkpoints halve the rate of bulk writes
      db.exec("BEGIN IMMEDIATE; COMMIT"); // takes the lock now, not at the first write
    } catch (error) {
      db.close();
      throw openingError(path, error);
    }
    this.#db = db;
  }

  /** Why no write will succeed before the file is opened anew; null while all is well. */
  get problem(): string | null {
    return this.#broken?.message ?? null;
  }

  setHooks(hooks: SqliteHooks): void {
    this.#hooks = hooks;
  }

  prepare(sql: string): StatementSync {
    return this.#db.prepare(sql);
  }

  exec(sql: string): void {
    this.#db.exec(sql);
  }

  /** Runs the operation with others of the same turn in one transaction; resolves when that is on the disk. */
  write<T>(operation: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#closed) return reject(new BatonError("STOPPED", "the store is stopped"));
      if (this.#broken) return reject(this.#broken);
      this.#pending.push({ operation, resolve, reject });
      if (this.path === IN_MEMORY) return this.#commit();
      if (this.#scheduled) return;
      this.#scheduled = true;
      void this.#clock.turn().then(() => this.#commit());
    });
  }

  /** Reads see committed state only: a transaction never spans two turns. */
  read<T>(query: () => T): T {
    if (this.#closed) throw new BatonError("STOPPED", "the store is stopped");
    return query();
  }

  close(): void {
    if (this.#closed) return;
    this.#commit();
    this.#closed = true;
    this.#db.close();
  }

  #commit(): void {
    this.#scheduled = false;
    const group = this.#pending;
    this.#pending = [];
    if (group.length > 0) this.#commitGroup(group);
  }

  #commitGroup(group: readonly Pending[]): void {
    const results: ({ value: unknown } | { error: unknown })[] = [];
    try {
      if (this.#broken) throw this.#broken;
      this.#db.exec("BEGIN IMMEDIATE");
      for (const entry of group) results.push(attempt(entry.operation));
      this.#hooks.beforeCommit?.();
      this.#db.exec("COMMIT");
    } catch (error) {
      this.#fail(group, error);
      return;
    }
    for (let i = 0; i < group.length; i++) {
      const result = results[i]!;
      if ("error" in result) group[i]!.reject(result.error);
      else group[i]!.resolve(result.value as never);
    }
  }

  #fail(group: readonly Pending[], error: unknown): void {
    if (this.#db.isTransaction) {
      try {
        this.#db.exec("ROLLBACK");
      } catch {
        // SQLite rolls back by itself on the errors that make this fail.
      }
    }
    const failure = unavailable(error);
    if (isIoError(error)) this.#broken ??= failure;
    try {
      this.#hooks.afterRollback?.();
    } catch (unreadable) {
      this.#broken ??= unavailable(unreadable);
    }
    // One of them is to blame, and not the disk: alone, the others succeed.
    if (group.length > 1 && !this.#broken && !isDiskFull(error))
      for (const entry of group) this.#commitGroup([entry]);
    else for (const entry of group) entry.reject(failure);
  }
}

function openDatabase(path: string): DatabaseSync {
  try {
    if (path !== IN_MEMORY) {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      makePrivate(path);
    }
    return new DatabaseSync(path);
  } catch (error) {
    throw openingError(path, error);
  }
}

/** The file is its owner's alone, and no link to another user's. SQLite gives its log the rights of the file. */
function makePrivate(path: string): void {
  const flags = constants.O_RDWR | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0);
  const descriptor = openSync(path, flags, 0o600);
  try {
    fchmodSync(descriptor, 0o600);
  } finally {
    closeSync(descriptor);
  }
}

function attempt(operation: () => unknown): { value: unknown } | { error: unknown } {
  try {
    return { value: operation() };
  } catch (error) {
    if (error instanceof BatonError) return { error };
    throw error;
  }
}

function sqliteCode(error: unknown): number | undefined {
  return (error as { errcode?: number }).errcode;
}

function isDiskFull(error: unknown): boolean {
  return sqliteCode(error) === SQLITE_FULL;
}

/** SQLITE_IOERR and its extended codes share the low byte 10. */
function isIoError(error: unknown): boolean {
  const code = sqliteCode(error);
  return code !== undefined && (code & 0xff) === 10;
}

function unavailable(error: unknown): BatonError {
  if (error instanceof BatonError) return error;
  const reason = reasonOf(error);
  const remedy = sqliteCode(error) === SQLITE_FULL ? "; free some space on the disk and try again" : "";
  const message = `the store refused a write: ${reason}${remedy}`;
  return new BatonError("STORE_UNAVAILABLE", message, {}, { cause: error });
}

/** Why a file cannot be worked with, in words for the operator. Errors of other kinds stay as they are. */
export function openingError(path: string, cause: unknown): unknown {
  if (cause instanceof BatonError) return cause;
  const other = "start with another --data directory";
  const about = { field: "data", path };
  const unusable = (what: string): BatonError =>
    new BatonError("DATA_UNUSABLE", `${path} ${what}`, about, { cause });
  const code = sqliteCode(cause);
  if (code === undefined) {
    const { syscall, message } = cause as NodeJS.ErrnoException;
    return syscall === undefined
      ? cause
      : unusable(`cannot be made: ${message}; give a --data directory that can`);
  }
  const { message } = cause as Error;
  switch (code & 0xff) {
    case SQLITE_BUSY: {
      const text = `${path} is in use by another process; stop that node, or ${other}`;
      return new BatonError("DATA_IN_USE", text, about, { cause });
    }
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return unusable(`is damaged (${message}); put back a copy of it, or move it away and start empty`);
    case SQLITE_FULL:
      return unusable(`cannot be written: ${message}; free some space on the disk, or ${other}`);
    default:
      return unusable(`cannot be opened: ${message}; check the rights on it, or ${other}`);
  }
}
