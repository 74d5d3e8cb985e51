/**
 * The tables of the embedded store.
 *
 *   job    what was requested; written once and never changed or moved until it is removed, but for `key_task`: its
 *          task while its idempotency key belongs to it, null when a later job has the key
 *   live   the state of a job that is neither fresh nor finished
 *   done   how a job ended
 *
 * A plain job (due at once, priority 0) has no row in `live` until it is claimed: the end of `job` behind the cursor
 * `head` is its queue, as a log. So a submit is one row and one narrow index entry, and a claim is one small row
 * instead of an update that would copy the payload. A job that the head passes without claiming it (paused queue,
 * unknown task) gets a row in `live` with a `lane`, where a claimant that may take it finds it.
 *
 * All access follows `seq`, the order of arrival, so that a million finished jobs cost the hot path nothing.
 */

import { BatonError } from "../../core/errors.ts";
import { SCRIPT_TABLES, tableForSqlite } from "../script-tables.ts";
import type { SqliteFile } from "../../platform/drivers/sqlite/sqlite-file.ts";

/** All columns of `done` but the result. */
export const DONE_COLUMNS =
  "seq, status, finished_at, run_at, job_epoch, attempts, failures, interruptions, crashes, started_at, worker, lease, author, logs, progress, progress_message, cancel_requested, error, killed";

/** Numbered from 1; each runs in its own transaction together with the increase of `user_version`. Never edit one that was released. */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE job (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    id_key INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    payload TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    timeout_ms INTEGER,
    idempotency_key TEXT,
    schedule TEXT,
    author INTEGER NOT NULL,
    fresh INTEGER NOT NULL,
    trace TEXT,
    tags TEXT,
    key_task TEXT
  ) STRICT;
  CREATE INDEX job_id_key ON job (id_key);
  CREATE UNIQUE INDEX job_idempotency ON job (idempotency_key, key_task) WHERE key_task IS NOT NULL;

  CREATE TABLE live (
    seq INTEGER PRIMARY KEY,
    status INTEGER NOT NULL,
    lane INTEGER,
    priority INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    job_epoch INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    interruptions INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    suspect INTEGER NOT NULL DEFAULT 0,
    updated_at INTEGER NOT NULL,
    started_at INTEGER,
    worker INTEGER,
    lease INTEGER,
    author INTEGER NOT NULL,
    logs INTEGER NOT NULL DEFAULT 0,
    progress REAL,
    progress_message TEXT,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    cancel_reason TEXT,
    error TEXT,
    killed TEXT
  ) STRICT;
  CREATE INDEX live_line ON live (priority DESC, run_at, seq) WHERE status = 1 AND lane IS NULL AND suspect = 0;
  CREATE INDEX live_lane ON live (lane, priority DESC, run_at, seq) WHERE status = 1 AND lane IS NOT NULL AND suspect = 0;
  CREATE INDEX live_suspect ON live (priority DESC, run_at, seq) WHERE status = 1 AND suspect = 1;
  CREATE INDEX live_due ON live (run_at, seq) WHERE status = 0;

  CREATE TABLE done (
    seq INTEGER PRIMARY KEY,
    status INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    job_epoch INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    interruptions INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    started_at INTEGER,
    worker INTEGER,
    lease INTEGER,
    author INTEGER NOT NULL,
    logs INTEGER NOT NULL DEFAULT 0,
    progress REAL,
    progress_message TEXT,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    killed TEXT,
    result TEXT
  ) STRICT;
  CREATE INDEX done_unusual ON done (status, seq) WHERE status <> 3;

  CREATE TABLE log (
    seq INTEGER NOT NULL,
    n INTEGER NOT NULL,
    at INTEGER NOT NULL,
    level TEXT NOT NULL,
    message TEXT NOT NULL,
    job_epoch INTEGER NOT NULL,
    PRIMARY KEY (seq, n)
  ) WITHOUT ROWID, STRICT;

  CREATE TABLE kind (id INTEGER PRIMARY KEY, queue TEXT NOT NULL, task TEXT NOT NULL, UNIQUE (queue, task)) STRICT;
  CREATE TABLE author (id INTEGER PRIMARY KEY, node TEXT NOT NULL, owner_epoch INTEGER NOT NULL, leader_epoch INTEGER NOT NULL) STRICT;
  CREATE TABLE worker (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
  CREATE TABLE lease (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, expires_at INTEGER NOT NULL) STRICT;
  CREATE TABLE cursor (name TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
  CREATE TABLE queue (name TEXT PRIMARY KEY, paused INTEGER NOT NULL) STRICT;
  CREATE TABLE tally (queue TEXT NOT NULL, status INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (queue, status)) WITHOUT ROWID, STRICT;

  CREATE TABLE schedule_note (name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, counter INTEGER NOT NULL, note TEXT NOT NULL) STRICT;
  CREATE TABLE schedule_placed (
    schedule TEXT NOT NULL, at INTEGER NOT NULL, job TEXT, epoch INTEGER NOT NULL, counter INTEGER NOT NULL,
    PRIMARY KEY (schedule, at)
  ) WITHOUT ROWID, STRICT;
  CREATE TABLE schedule_complete (epoch INTEGER NOT NULL) STRICT;

  CREATE TABLE past_run (
    seq INTEGER NOT NULL,
    job_epoch INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    worker INTEGER,
    author INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    error TEXT,
    PRIMARY KEY (seq, job_epoch)
  ) WITHOUT ROWID, STRICT;

  -- Walked by a list of jobs with a tag. Submit writes it: a trigger would cost every job 0.4 µs, even without tags.
  CREATE TABLE job_tag (value TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (value, seq)) WITHOUT ROWID, STRICT;
  CREATE TRIGGER job_untagged AFTER DELETE ON job WHEN old.tags IS NOT NULL BEGIN
    DELETE FROM job_tag WHERE seq = old.seq AND value IN (SELECT value FROM json_each(old.tags));
  END;
  `.concat(...SCRIPT_TABLES.map((text) => `${tableForSqlite(text)};`)),
];

export function migrate(file: SqliteFile): void {
  const found = Number(Object.values(file.prepare("PRAGMA user_version").get()!)[0]);
  if (found > MIGRATIONS.length) {
    throw new BatonError(
      "DATA_UNUSABLE",
      `${file.path} was written by a newer version of Baton (schema ${found}, this version knows ${MIGRATIONS.length}); start that version, or use another --data directory`,
      { field: "data" },
    );
  }
  for (let version = found; version < MIGRATIONS.length; version++) {
    file.exec("BEGIN IMMEDIATE");
    file.exec(MIGRATIONS[version]!);
    file.exec(`PRAGMA user_version = ${version + 1}`);
    file.exec("COMMIT");
  }
}
