/**
 * Ensures one supervisor per data directory. The lock is the operating system's, on a file that SQLite holds open: it
 * ends with the process, for whatever reason, so it is never stale. The alternative, a file with a process id, was
 * rejected: ids are reused, and in a container every process has number 1.
 */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { BatonError } from "../core/errors.ts";

const SQLITE_BUSY = 5;

export class DataLock {
  readonly #db: DatabaseSync;

  private constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Null while another process has it. */
  static take(directory: string): DataLock | null {
    let db: DatabaseSync;
    try {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      db = new DatabaseSync(join(directory, "controller.lock"));
    } catch (error) {
      throw unusable(directory, error);
    }
    try {
      db.exec("BEGIN EXCLUSIVE");
      return new DataLock(db);
    } catch (error) {
      db.close();
      if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return null;
      throw unusable(directory, error);
    }
  }

  release(): void {
    if (this.#db.isOpen) this.#db.close();
  }
}

function unusable(directory: string, error: unknown): BatonError {
  const why = error instanceof Error ? error.message : String(error);
  return new BatonError(
    "DATA_UNUSABLE",
    `the data directory ${directory} cannot be used: ${why}`,
    {},
    { cause: error },
  );
}
