/**
 * Schedules and their occurrences in SQLite. `fire` notes the occurrences, submits their jobs and sets the next instant
 * in one transaction under the leader's term. The methods after `history` serve schedule-notes.ts and run inside its
 * transaction.
 */

import { isDeepStrictEqual } from "node:util";
import type { JobId } from "../../core/ids.ts";
import {
  decideOccurrences,
  type Schedule,
  type ScheduleDefinition,
  type SkipReason,
} from "../../core/schedules/schedule.ts";
import { definitionOf } from "../../core/schedules/schedule-register.ts";
import { isFinal } from "../../core/jobs/job.ts";
import type { Term } from "../../core/leadership/term.ts";
import type { Author, Firing, FireVerdict, NotedOccurrence, ScheduleStore } from "../store.ts";
import type { StoreCache } from "./jobs/store-cache.ts";
import type { Read } from "./jobs/read.ts";
import type { Submit } from "./jobs/submit.ts";
import type { SqliteScripts } from "./scripts.ts";

type Row = Record<string, string | number | null>;

export class SqliteSchedules implements ScheduleStore {
  readonly #ledger: StoreCache;
  readonly #scripts: SqliteScripts;
  readonly #submit: Submit;
  readonly #read: Read;
  readonly #sql;

  constructor(parts: { ledger: StoreCache; scripts: SqliteScripts; submit: Submit; read: Read }) {
    this.#ledger = parts.ledger;
    this.#scripts = parts.scripts;
    this.#submit = parts.submit;
    this.#read = parts.read;
    const { file } = parts.ledger;
    this.#sql = {
      one: file.prepare("SELECT * FROM schedule WHERE name = ?"),
      all: file.prepare("SELECT * FROM schedule ORDER BY name"),
      insert: file.prepare("INSERT INTO schedule VALUES (?1, ?2, 0, ?3, ?3, ?4, NULL, NULL, 0)"),
      replace: file.prepare("UPDATE schedule SET definition = ?, updated_at = ?, next_at = ? WHERE name = ?"),
      remove: file.prepare("DELETE FROM schedule WHERE name = ?"),
      pause: file.prepare("UPDATE schedule SET paused = ?, next_at = ?, updated_at = ? WHERE name = ?"),
      advance: file.prepare("UPDATE schedule SET next_at = ?, leader_epoch = ? WHERE name = ?"),
      fired: file.prepare("UPDATE schedule SET last_fired_at = ?, last_job = ? WHERE name = ?"),
      noted: file.prepare("SELECT 1 FROM occurrence WHERE schedule = ? AND at = ?"),
      note: file.prepare("INSERT INTO occurrence VALUES (?, ?, ?, ?, ?, ?, ?)"),
      history: file.prepare("SELECT * FROM occurrence WHERE schedule = ? ORDER BY at DESC LIMIT ?"),
      occurrence: file.prepare("SELECT * FROM occurrence WHERE schedule = ? AND at = ?"),
      show: file.prepare("INSERT OR REPLACE INTO schedule VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      showOccurrence: file.prepare("INSERT OR REPLACE INTO occurrence VALUES (?, ?, ?, ?, ?, ?, ?)"),
    };
  }

  put(definition: ScheduleDefinition, nextAt: number | null) {
    return this.#ledger.file.write(() => {
      const now = this.#ledger.clock.now();
      const text = JSON.stringify(definition);
      const known = this.#sql.one.get(definition.name) as Row | undefined;
      if (known && isDeepStrictEqual(JSON.parse(known["definition"] as string), JSON.parse(text))) {
        return { schedule: toSchedule(known), outcome: "unchanged" as const };
      }
      if (known) this.#sql.replace.run(text, now, nextAt, definition.name);
      else this.#sql.insert.run(definition.name, text, now, nextAt);
      const outcome = known ? ("replaced" as const) : ("created" as const);
      return { schedule: this.#one(definition.name)!, outcome };
    });
  }

  async get(name: string): Promise<Schedule | null> {
    return this.#ledger.file.read(() => this.#one(name));
  }

  async list(): Promise<readonly Schedule[]> {
    return this.#ledger.file.read(() => (this.#sql.all.all() as Row[]).map(toSchedule));
  }

  remove(name: string): Promise<boolean> {
    return this.#ledger.file.write(() => this.#sql.remove.run(name).changes === 1);
  }

  setPaused(name: string, paused: boolean, nextAt: number | null): Promise<Schedule | null> {
    return this.#ledger.file.write(() => {
      this.#sql.pause.run(paused ? 1 : 0, nextAt, this.#ledger.clock.now(), name);
      return this.#one(name);
    });
  }

  fire(firing: Firing, author: Author, fence: Term): Promise<readonly FireVerdict[]> {
    return this.#ledger.file.write(() => {
      this.#scripts.check(fence);
      const schedule = this.#one(firing.schedule);
      if (!schedule || schedule.paused || schedule.nextAt !== firing.expectedNextAt) {
        return firing.occurrences.map((): FireVerdict => "changed");
      }
      const { occurrences, overlap } = firing;
      const decided = decideOccurrences(
        occurrences.map(({ job, ...occurrence }) => ({ ...occurrence, run: job })),
        {
          noted: new Set(
            occurrences.map(({ at }) => at).filter((at) => this.#sql.noted.get(schedule.name, at)),
          ),
          overlap,
          predecessorRuns: this.#unfinished(schedule.lastJob as JobId | null),
        },
      );
      const now = this.#ledger.clock.now();
      for (const one of decided) {
        if (one.verdict === "already") continue;
        const job = one.verdict === "fired" ? one.run : null;
        const reason = one.verdict === "skipped" ? one.reason : null;
        const row = [job ? 1 : 0, reason, job?.id ?? null, fence.epoch, now] as const;
        this.#sql.note.run(schedule.name, one.at, ...row);
        if (!job) continue;
        this.#submit.run([job], { ...author, leaderEpoch: fence.epoch }, schedule.name);
        this.#sql.fired.run(one.at, job.id, schedule.name);
      }
      this.#sql.advance.run(firing.nextAt, fence.epoch, schedule.name);
      return decided.map(({ verdict }) => verdict);
    });
  }

  async history(name: string, limit: number): Promise<readonly NotedOccurrence[]> {
    return this.#ledger.file.read(() => (this.#sql.history.all(name, limit) as Row[]).map(toOccurrence));
  }

  // ------------------------------------------------------------ for notes, inside their transaction

  one(name: string): Schedule | null {
    return this.#one(name);
  }

  occurrence(schedule: string, at: number): NotedOccurrence | undefined {
    const row = this.#sql.occurrence.get(schedule, at) as Row | undefined;
    return row && toOccurrence(row);
  }

  /** Shows what a leader has noted; null removes it. */
  show(name: string, schedule: Schedule | null): void {
    if (!schedule) return void this.#sql.remove.run(name);
    const { paused, createdAt, updatedAt, nextAt, lastFiredAt, lastJob, leaderEpoch } = schedule;
    const definition = JSON.stringify(definitionOf(schedule));
    const times = [createdAt, updatedAt, nextAt, lastFiredAt] as const;
    this.#sql.show.run(name, definition, paused ? 1 : 0, ...times, lastJob, leaderEpoch);
  }

  showOccurrence(row: NotedOccurrence): void {
    const { schedule, at, reason, job, leaderEpoch, notedAt } = row;
    this.#sql.showOccurrence.run(schedule, at, row.do === "fire" ? 1 : 0, reason, job, leaderEpoch, notedAt);
  }

  #one(name: string): Schedule | null {
    const row = this.#sql.one.get(name) as Row | undefined;
    return row ? toSchedule(row) : null;
  }

  #unfinished(job: JobId | null): boolean {
    const found = job === null ? null : this.#read.get(job);
    return found !== null && !isFinal(found.status);
  }
}

function toOccurrence(row: Row): NotedOccurrence {
  return {
    schedule: row["schedule"] as string,
    at: row["at"] as number,
    do: row["fired"] === 1 ? "fire" : "skip",
    reason: row["reason"] as SkipReason | null,
    job: row["job"] as JobId | null,
    leaderEpoch: row["leader_epoch"] as number,
    notedAt: row["noted_at"] as number,
  };
}

function toSchedule(row: Row): Schedule {
  return {
    ...(JSON.parse(row["definition"] as string) as ScheduleDefinition),
    paused: row["paused"] === 1,
    createdAt: row["created_at"] as number,
    updatedAt: row["updated_at"] as number,
    nextAt: row["next_at"] as number | null,
    lastFiredAt: row["last_fired_at"] as number | null,
    lastJob: row["last_job"] as string | null,
    leaderEpoch: row["leader_epoch"] as number,
  };
}
