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

/** Returns the function that releases it; null while another process has it. */
export function lockDataFolder(directory: string): (() => void) | null {
  let db: DatabaseSync | undefined;
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    db = new DatabaseSync(join(directory, "controller.lock"));
    db.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    db?.close();
    if (db && (error as { errcode?: number }).errcode === SQLITE_BUSY) return null;
    const why = error instanceof Error ? error.message : String(error);
    const message = `the data directory ${directory} cannot be used: ${why}`;
    throw new BatonError("DATA_UNUSABLE", message, {}, { cause: error });
  }
  const held = db;
  return () => {
    if (held.isOpen) held.close();
  };
}
