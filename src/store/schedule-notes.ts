/**
 * Replicated schedules and pauses of queues in the store of one node, for clusters without a shared store: the notes of
 * leaders (core/schedules/schedule-register.ts). The node's own `ScheduleStore` and `QueueStore` show the content of
 * these notes.
 *
 * A call of a leader carries its term. The term is admitted in the same transaction, so that no older term can write
 * afterwards; a term older than the highest known one is refused with STALE_EPOCH.
 */

import { BatonError } from "../core/errors.ts";
import type { JobId, NodeName } from "../core/ids.ts";
import type { Term } from "../core/leadership/term.ts";
import {
  compareVersions,
  definitionOf,
  mayForget,
  placedVerdict,
  QUEUE_KEYS,
  queueNote,
  rowGivesWay,
  type ScheduleNote,
  unnoted,
  UNNOTED,
  type Version,
} from "../core/schedules/schedule-register.ts";
import type { Schedule } from "../core/schedules/schedule.ts";
import { readOccurrences, readSchedule } from "./schedules.ts";
import { call, query, type Script, type Scripts, sql } from "./script.ts";
import type { Author, NewJob, NotedOccurrence, Submitted } from "./store.ts";
import { admitTerm } from "./terms.ts";

export interface ScheduleNotes {
  /** Stores newer notes and the occurrences. */
  write(batch: NoteBatch, term: Term): Promise<NoteState>;

  /** One note, or those of all queues with resumed ones. Needs no term. */
  read(which: { readonly name: string } | "pauses"): Promise<FoundNotes>;
  /** For a leader, in the order of names. A schedule or pause from before there was a cluster has version 0. */
  read(page: NotePage, term: Term): Promise<FoundNotes>;

  /** Stores newer notes of queues, from another member without a term. */
  learn(pauses: readonly ScheduleNote[]): Promise<void>;

  /**
   * Submits the jobs of runs, each once even if its job is removed, until notes of a leader close the run. With `takes`
   * false nothing is submitted: a run without a job is answered "absent", as is every later request for it under the
   * same or a lower version.
   */
  place(runs: readonly Placing[], by: Placer, term: Term): Promise<readonly PlaceVerdict[]>;

  /** Removes tombstones of exactly these versions. */
  forget(names: readonly { readonly name: string; readonly version: Version }[], term: Term): Promise<void>;
}

export interface NoteBatch {
  readonly notes: readonly ScheduleNote[];
  readonly occurrences: readonly NotedOccurrence[];
  /** The batch completes what the leader has. */
  readonly complete: boolean;
}

export interface NoteState {
  /** No leader has brought this node up to date yet. */
  readonly blank: boolean;
}

export interface FoundNotes extends NoteState {
  readonly notes: readonly ScheduleNote[];
}

export interface NotePage {
  /** Names after this one; null for the first page. */
  readonly after: string | null;
  readonly limit: number;
}

export interface Placing {
  readonly schedule: string;
  readonly at: number;
  readonly job: NewJob;
  /** The version of the note in which the run is open. */
  readonly version: Version;
}

export interface Placer {
  /** The node itself: it owns the jobs. */
  readonly self: NodeName;
  readonly takes: boolean;
}

export type PlaceVerdict = "stored" | "already" | "absent";

/** What a script of notes does with queues and jobs, inside its transaction. */
export interface NoteEffects {
  pause(queue: string, paused: boolean): void;
  submit(job: NewJob, author: Author, schedule: string): Submitted;
}

/** The tables of notes are in SQLite only. */
const ONE = sql("note-get", "SELECT note FROM schedule_note WHERE name = $1");
const PAUSES = sql("note-pauses", `SELECT note FROM schedule_note WHERE name LIKE '${QUEUE_KEYS}%'`);
const NAMES = sql(
  "note-names",
  `SELECT name FROM (
     SELECT name FROM schedule_note UNION SELECT name FROM schedule
     UNION SELECT '${QUEUE_KEYS}' || name FROM queue WHERE paused = 1
   ) WHERE name > $1 ORDER BY name LIMIT $2`,
);
const KEEP = sql("note-keep", "INSERT OR REPLACE INTO schedule_note VALUES ($1, $2, $3, $4)");
const DROP = sql("note-drop", "DELETE FROM schedule_note WHERE name = $1");
const COMPLETE = sql("note-complete", "SELECT 1 AS one FROM schedule_complete LIMIT 1");
const SET_COMPLETE = sql("note-set-complete", "INSERT INTO schedule_complete VALUES ($1)");
const PLACED = sql(
  "note-placed",
  "SELECT job, epoch, counter FROM schedule_placed WHERE schedule = $1 AND at = $2",
);
const ALL_PLACED = sql("note-all-placed", "SELECT at FROM schedule_placed WHERE schedule = $1");
const SET_PLACED = sql(
  "note-set-placed",
  "INSERT OR REPLACE INTO schedule_placed VALUES ($1, $2, $3, $4, $5)",
);
const UNPLACE = sql("note-unplace", "DELETE FROM schedule_placed WHERE schedule = $1 AND at = $2");
const SHOW = sql("note-show", "INSERT OR REPLACE INTO schedule VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)");
const HIDE = sql("note-hide", "DELETE FROM schedule WHERE name = $1");
const SHOW_OCCURRENCE = sql(
  "note-occurrence",
  `INSERT OR REPLACE INTO occurrence (schedule, at, fired, reason, job, leader_epoch, noted_at)
   VALUES ($1, $2, $3, $4, $5, $6, $7)`,
);

export function scheduleNotes(scripts: Scripts, effects: NoteEffects): ScheduleNotes {
  const led = <T>(term: Term, script: () => Script<T>): Promise<T> =>
    scripts.write(function* () {
      if (!(yield* admitTerm(term))) throw staleTerm(term);
      return yield* script();
    });
  return {
    write: (batch, term) => led(term, () => writeNotes(batch, term, effects)),
    read: (which: { readonly name: string } | "pauses" | NotePage, term?: Term) =>
      which === "pauses" || "name" in which
        ? scripts.read(() => readSome(which))
        : led(term!, () => readPage(which)),
    learn: (pauses) =>
      scripts.write(function* () {
        for (const note of pauses) if (note.queue) yield* keep(note, effects);
      }),
    place: (runs, by, term) => led(term, () => placeRuns(runs, by, term, effects)),
    forget: (names, term) => led(term, () => forgetNotes(names)),
  };
}

function* writeNotes(
  { notes, occurrences, complete }: NoteBatch,
  term: Term,
  effects: NoteEffects,
): Script<NoteState> {
  const newer = new Set<string>();
  for (const note of notes) if (yield* keep(note, effects)) newer.add(note.name);
  for (const row of occurrences) {
    const [known] = yield* readOccurrences(row.schedule, [row.at]);
    if (known && !rowGivesWay(known, row, newer.has(row.schedule))) continue;
    const { schedule, at, reason, job, leaderEpoch, notedAt } = row;
    yield* query(SHOW_OCCURRENCE, schedule, at, row.do === "fire" ? 1 : 0, reason, job, leaderEpoch, notedAt);
  }
  if (complete && (yield* isBlank())) yield* query(SET_COMPLETE, term.epoch);
  return { blank: yield* isBlank() };
}

function* readSome(which: { readonly name: string } | "pauses"): Script<FoundNotes> {
  const rows = which === "pauses" ? yield* query<NoteRow>(PAUSES) : yield* query<NoteRow>(ONE, which.name);
  return { blank: yield* isBlank(), notes: rows.map(noteIn) };
}

function* readPage({ after, limit }: NotePage): Script<FoundNotes> {
  const notes: ScheduleNote[] = [];
  for (const { name } of yield* query<{ name: string }>(NAMES, after ?? "", limit)) {
    const note = yield* noteOf(name);
    if (note) notes.push(note);
    else if (name.startsWith(QUEUE_KEYS))
      notes.push({ ...queueNote(name.slice(QUEUE_KEYS.length), true, 0), version: UNNOTED });
    else notes.push(unnoted((yield* readSchedule(name))!));
  }
  return { blank: yield* isBlank(), notes };
}

function* placeRuns(
  runs: readonly Placing[],
  { self, takes }: Placer,
  term: Term,
  effects: NoteEffects,
): Script<PlaceVerdict[]> {
  const author = { node: self, ownerEpoch: term.epoch, leaderEpoch: term.epoch };
  const verdicts: PlaceVerdict[] = [];
  for (const { schedule, at, job, version } of runs) {
    const run = { at, runAt: job.runAt, job: job.id, target: self };
    const note = yield* noteOf(schedule);
    const [row] = yield* query<{ job: JobId | null } & Version>(PLACED, schedule, at);
    const placed = row && { job: row.job, version: row };
    const verdict = placedVerdict({ note, placed }, version, run);
    if (!verdict)
      yield* query(SET_PLACED, schedule, at, takes ? job.id : null, version.epoch, version.counter);
    if (verdict || !takes) verdicts.push(verdict ?? "absent");
    else {
      const { existed } = yield* call(() => effects.submit(job, author, schedule));
      verdicts.push(existed ? "already" : "stored");
    }
  }
  return verdicts;
}

function* forgetNotes(names: readonly { readonly name: string; readonly version: Version }[]): Script<void> {
  for (const { name, version } of names) {
    const note = yield* noteOf(name);
    if (note?.schedule !== null || note.queue?.paused) continue;
    if (compareVersions(note.version, version) !== 0) continue;
    yield* query(DROP, name);
    for (const { at } of yield* query<{ at: number }>(ALL_PLACED, name)) yield* query(UNPLACE, name, at);
  }
}

/** Stores a note if it is newer than the known one. */
function* keep(note: ScheduleNote, effects: NoteEffects): Script<boolean> {
  const { name, version, schedule, queue } = note;
  const known = yield* noteOf(name);
  if (known && compareVersions(known.version, version) >= 0) return false;
  yield* query(KEEP, name, version.epoch, version.counter, JSON.stringify(note));
  if (queue) yield* call(() => effects.pause(queue.name, queue.paused));
  else if (schedule) yield* show(schedule);
  else yield* query(HIDE, name);
  for (const { at } of yield* query<{ at: number }>(ALL_PLACED, name)) {
    if (mayForget(known, note, at)) yield* query(UNPLACE, name, at);
  }
  return true;
}

function* show(schedule: Schedule): Script<void> {
  const { name, paused, createdAt, updatedAt, nextAt, lastFiredAt, lastJob, leaderEpoch } = schedule;
  const definition = JSON.stringify(definitionOf(schedule));
  const times = [createdAt, updatedAt, nextAt, lastFiredAt] as const;
  yield* query(SHOW, name, definition, paused ? 1 : 0, ...times, lastJob, leaderEpoch);
}

interface NoteRow {
  readonly note: string;
}

function noteIn({ note }: NoteRow): ScheduleNote {
  return JSON.parse(note) as ScheduleNote;
}

function* noteOf(name: string): Script<ScheduleNote | undefined> {
  const [row] = yield* query<NoteRow>(ONE, name);
  return row && noteIn(row);
}

function* isBlank(): Script<boolean> {
  return (yield* query(COMPLETE)).length === 0;
}

function staleTerm({ role, epoch, leader }: Term): BatonError {
  return new BatonError("STALE_EPOCH", `term ${epoch} of ${leader} as ${role} is over; nothing was written`, {
    role,
    epoch,
  });
}
