/**
 * Replicated schedules in SQLite: the notes of leaders, and the runs that were placed on this node. Every call that
 * names a term admits it first, in the same transaction, and refuses an older one with STALE_EPOCH.
 */

import type { JobId } from "../../core/ids.ts";
import type { PlacedRun, ScheduleNote, Version } from "../../core/schedules/schedule-register.ts";
import {
  compareVersions,
  definitionOf,
  mayForget,
  placedVerdict,
  QUEUE_KEYS,
  queueNote,
  rowGivesWay,
  unnoted,
  UNNOTED,
} from "../../core/schedules/schedule-register.ts";
import type { Schedule } from "../../core/schedules/schedule.ts";
import type { Term } from "../../core/leadership/term.ts";
import type {
  FoundNotes,
  NoteBatch,
  NotePage,
  NoteState,
  Placer,
  PlaceVerdict,
  Placing,
  ScheduleNotes,
} from "../schedule-notes.ts";
import { staleTerm } from "../schedule-notes.ts";
import { readOccurrences, readSchedule } from "../schedules.ts";
import type { NotedOccurrence } from "../store.ts";
import { admitTerm } from "../terms.ts";
import type { StoreCache } from "./jobs/store-cache.ts";
import type { Submit } from "./jobs/submit.ts";
import type { SqliteScripts } from "./scripts.ts";

export class SqliteScheduleNotes implements ScheduleNotes {
  readonly #cache: StoreCache;
  readonly #scripts: SqliteScripts;
  readonly #submit: Submit;
  readonly #sql;

  constructor(parts: { cache: StoreCache; scripts: SqliteScripts; submit: Submit }) {
    this.#cache = parts.cache;
    this.#scripts = parts.scripts;
    this.#submit = parts.submit;
    const { file } = parts.cache;
    this.#sql = {
      one: file.prepare("SELECT note FROM schedule_note WHERE name = ?"),
      keep: file.prepare("INSERT OR REPLACE INTO schedule_note VALUES (?, ?, ?, ?)"),
      drop: file.prepare("DELETE FROM schedule_note WHERE name = ?"),
      names: file.prepare(
        `SELECT name FROM (
          SELECT name FROM schedule_note UNION SELECT name FROM schedule
          UNION SELECT '${QUEUE_KEYS}' || name FROM queue WHERE paused = 1
        ) WHERE name > ? ORDER BY name LIMIT ?`,
      ),
      pauses: file.prepare(`SELECT note FROM schedule_note WHERE name LIKE '${QUEUE_KEYS}%'`),
      complete: file.prepare("SELECT count(*) AS n FROM schedule_complete"),
      setComplete: file.prepare("INSERT INTO schedule_complete VALUES (?)"),
      placed: file.prepare("SELECT at FROM schedule_placed WHERE schedule = ?"),
      onePlaced: file.prepare(
        "SELECT job, epoch, counter FROM schedule_placed WHERE schedule = ? AND at = ?",
      ),
      setPlaced: file.prepare("INSERT OR REPLACE INTO schedule_placed VALUES (?, ?, ?, ?, ?)"),
      show: file.prepare("INSERT OR REPLACE INTO schedule VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      hide: file.prepare("DELETE FROM schedule WHERE name = ?"),
      showOccurrence: file.prepare(
        "INSERT OR REPLACE INTO occurrence (schedule, at, fired, reason, job, leader_epoch, noted_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
      ),
      unplace: file.prepare("DELETE FROM schedule_placed WHERE schedule = ? AND at = ?"),
    };
  }

  write(batch: NoteBatch, term: Term): Promise<NoteState> {
    return this.#cache.file.write(() => {
      this.#admit(term);
      const newer = new Set<string>();
      for (const note of batch.notes) if (this.#keep(note)) newer.add(note.name);
      for (const row of batch.occurrences) {
        const [known] = this.#scripts.run(readOccurrences(row.schedule, [row.at]));
        if (!known || rowGivesWay(known, row, newer.has(row.schedule))) this.#showOccurrence(row);
      }
      if (batch.complete && this.#blank()) this.#sql.setComplete.run(term.epoch);
      return { blank: this.#blank() };
    });
  }

  read(which: { readonly name: string } | "pauses" | NotePage, term?: Term): Promise<FoundNotes> {
    return which === "pauses" || "name" in which ? this.#some(which) : this.#page(which, term!);
  }

  learn(pauses: readonly ScheduleNote[]): Promise<void> {
    return this.#cache.file.write(() => {
      for (const note of pauses) if (note.queue) this.#keep(note);
    });
  }

  place(runs: readonly Placing[], by: Placer, term: Term): Promise<readonly PlaceVerdict[]> {
    return this.#cache.file.write(() => {
      this.#admit(term);
      const { self, takes } = by;
      const author = { node: self, ownerEpoch: term.epoch, leaderEpoch: term.epoch };
      return runs.map(({ schedule, at, job, version }): PlaceVerdict => {
        const run = { at, runAt: job.runAt, job: job.id, target: self };
        const known = { note: this.#one(schedule), placed: this.#placed(schedule, at) };
        const verdict = placedVerdict(known, version, run);
        if (verdict) return verdict;
        this.#sql.setPlaced.run(schedule, at, takes ? job.id : null, version.epoch, version.counter);
        if (!takes) return "absent";
        const [submitted] = this.#submit.run([job], author, schedule);
        return submitted!.existed ? "already" : "stored";
      });
    });
  }

  forget(names: readonly { readonly name: string; readonly version: Version }[], term: Term): Promise<void> {
    return this.#cache.file.write(() => {
      this.#admit(term);
      for (const { name, version } of names) {
        const note = this.#one(name);
        if (note?.schedule !== null || note.queue?.paused) continue;
        if (compareVersions(note.version, version) !== 0) continue;
        this.#sql.drop.run(name);
        for (const at of this.#placedOf(name)) this.#sql.unplace.run(name, at);
      }
    });
  }

  async #some(which: { readonly name: string } | "pauses"): Promise<FoundNotes> {
    const rows = which === "pauses" ? this.#sql.pauses.all() : this.#sql.one.all(which.name);
    return this.#found(rows.map(noteIn));
  }

  #page({ after, limit }: NotePage, term: Term): Promise<FoundNotes> {
    return this.#cache.file.write(() => {
      this.#admit(term);
      const names = this.#sql.names.all(after ?? "", limit) as { name: string }[];
      return this.#found(names.map(({ name }) => this.#one(name) ?? this.#unnoted(name)));
    });
  }

  #found(notes: readonly ScheduleNote[]): FoundNotes {
    return { blank: this.#blank(), notes };
  }

  #unnoted(name: string): ScheduleNote {
    if (!name.startsWith(QUEUE_KEYS)) return unnoted(this.#scripts.run(readSchedule(name))!);
    return { ...queueNote(name.slice(QUEUE_KEYS.length), true, 0), version: UNNOTED };
  }

  #keep(note: ScheduleNote): boolean {
    const { name, version, schedule, queue } = note;
    const known = this.#one(name);
    if (known && compareVersions(known.version, version) >= 0) return false;
    this.#sql.keep.run(name, version.epoch, version.counter, JSON.stringify(note));
    if (queue) this.#cache.setPaused(queue.name, queue.paused);
    else this.#show(name, schedule);
    for (const at of this.#placedOf(name)) if (mayForget(known, note, at)) this.#sql.unplace.run(name, at);
    return true;
  }

  /** Writes it to the table of schedules; null removes it there. */
  #show(name: string, schedule: Schedule | null): void {
    if (!schedule) return void this.#sql.hide.run(name);
    const { paused, createdAt, updatedAt, nextAt, lastFiredAt, lastJob, leaderEpoch } = schedule;
    const definition = JSON.stringify(definitionOf(schedule));
    const times = [createdAt, updatedAt, nextAt, lastFiredAt] as const;
    this.#sql.show.run(name, definition, paused ? 1 : 0, ...times, lastJob, leaderEpoch);
  }

  #showOccurrence(row: NotedOccurrence): void {
    const { schedule, at, reason, job, leaderEpoch, notedAt } = row;
    this.#sql.showOccurrence.run(schedule, at, row.do === "fire" ? 1 : 0, reason, job, leaderEpoch, notedAt);
  }

  #one(name: string): ScheduleNote | undefined {
    const row = this.#sql.one.get(name);
    return row && noteIn(row);
  }

  #placed(schedule: string, at: number): PlacedRun | undefined {
    const row = this.#sql.onePlaced.get(schedule, at);
    if (!row) return undefined;
    const version = { epoch: row["epoch"] as number, counter: row["counter"] as number };
    return { job: row["job"] as JobId | null, version };
  }

  #placedOf(name: string): number[] {
    return this.#sql.placed.all(name).map((row) => row["at"] as number);
  }

  #blank(): boolean {
    return this.#sql.complete.get()!["n"] === 0;
  }

  #admit(term: Term): void {
    if (!this.#scripts.run(admitTerm(term))) throw staleTerm(term);
  }
}

function noteIn(row: Readonly<Record<string, unknown>>): ScheduleNote {
  return JSON.parse(row["note"] as string) as ScheduleNote;
}
