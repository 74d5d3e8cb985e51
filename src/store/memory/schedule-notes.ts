/**
 * Replicated schedules in memory: the notes of leaders, and the runs that were placed on this node. Every call that
 * names a term admits it first, and refuses an older one with STALE_EPOCH.
 */

import type { PlacedRun, ScheduleNote, Version } from "../../core/schedules/schedule-register.ts";
import {
  compareVersions,
  mayForget,
  placedVerdict,
  rowGivesWay,
  unnoted,
} from "../../core/schedules/schedule-register.ts";
import type { Term } from "../../core/leadership/term.ts";
import type {
  NoteBatch,
  NotePage,
  NoteState,
  Placer,
  PlaceVerdict,
  Placing,
  ScheduleNotes,
} from "../schedule-notes.ts";
import { staleTerm } from "../schedule-notes.ts";
import type { NotedOccurrence } from "../store.ts";
import type { StoreCache } from "./jobs/store-cache.ts";
import type { MemorySchedules } from "./schedules.ts";
import type { MemoryTerms } from "./terms.ts";
import type { Turn } from "./turn.ts";

export class MemoryScheduleNotes implements ScheduleNotes {
  readonly #ledger: StoreCache;
  readonly #terms: MemoryTerms;
  readonly #schedules: MemorySchedules;
  readonly #turn: Turn;
  readonly #notes = new Map<string, ScheduleNote>();
  readonly #rows = new Map<string, Map<number, NotedOccurrence>>();
  readonly #placed = new Map<string, Map<number, PlacedRun>>();
  #complete = false;

  constructor(options: {
    readonly ledger: StoreCache;
    readonly terms: MemoryTerms;
    readonly schedules: MemorySchedules;
    readonly turn: Turn;
  }) {
    this.#ledger = options.ledger;
    this.#terms = options.terms;
    this.#schedules = options.schedules;
    this.#turn = options.turn;
  }

  write(batch: NoteBatch, term: Term): Promise<NoteState> {
    return this.#turn(() => {
      this.#admit(term);
      const newer = new Set<string>();
      for (const note of structuredClone(batch.notes)) if (this.#keep(note)) newer.add(note.name);
      for (const row of batch.occurrences) {
        const rows = this.#rowsOf(row.schedule);
        const known = rows.get(row.at);
        if (!known || rowGivesWay(known, row, newer.has(row.schedule))) rows.set(row.at, { ...row });
      }
      if (batch.complete) this.#complete = true;
      return { blank: !this.#complete };
    });
  }

  read({ after, limit }: NotePage, term: Term): Promise<readonly ScheduleNote[]> {
    return this.#turn(() => {
      this.#admit(term);
      const names = new Set([...this.#notes.keys(), ...this.#schedules.all().map(({ name }) => name)]);
      const page = [...names].filter((name) => after === null || name > after).sort();
      return page.slice(0, limit).map((name) => this.#notes.get(name) ?? unnoted(this.#schedules.one(name)!));
    });
  }

  place(runs: readonly Placing[], by: Placer, term: Term): Promise<readonly PlaceVerdict[]> {
    return this.#turn((now) => {
      this.#admit(term);
      const { self, takes } = by;
      const author = { node: self, ownerEpoch: term.epoch, leaderEpoch: term.epoch };
      return runs.map(({ schedule, at, job, version }): PlaceVerdict => {
        const run = { at, runAt: job.runAt, job: job.id, target: self };
        const placed = this.#placed.get(schedule) ?? new Map<number, PlacedRun>();
        const known = { note: this.#notes.get(schedule), placed: placed.get(at) };
        const verdict = placedVerdict(known, version, run);
        if (verdict) return verdict;
        this.#placed.set(schedule, placed.set(at, { job: takes ? job.id : null, version }));
        if (!takes) return "absent";
        const { existed } = this.#ledger.add({ ...job }, author, schedule, now);
        return existed ? "already" : "stored";
      });
    });
  }

  forget(names: readonly { readonly name: string; readonly version: Version }[], term: Term): Promise<void> {
    return this.#turn(() => {
      this.#admit(term);
      for (const { name, version } of names) {
        const note = this.#notes.get(name);
        if (note?.schedule !== null || compareVersions(note.version, version) !== 0) continue;
        this.#notes.delete(name);
        this.#placed.delete(name);
      }
    });
  }

  blank(): Promise<boolean> {
    return this.#turn(() => !this.#complete);
  }

  get(name: string): Promise<ScheduleNote | null> {
    return this.#turn(() => this.#notes.get(name) ?? null);
  }

  noted(schedule: string, instants: readonly number[]): Promise<readonly NotedOccurrence[]> {
    return this.#turn(() => instants.flatMap((at) => this.#rows.get(schedule)?.get(at) ?? []));
  }

  #keep(note: ScheduleNote): boolean {
    const { name, schedule } = note;
    const known = this.#notes.get(name);
    if (known && compareVersions(known.version, note.version) >= 0) return false;
    this.#notes.set(name, note);
    this.#schedules.show(name, schedule, this.#rowsOf(name));
    const placed = this.#placed.get(name);
    for (const at of placed?.keys() ?? []) if (mayForget(known, note, at)) placed!.delete(at);
    return true;
  }

  #rowsOf(schedule: string): Map<number, NotedOccurrence> {
    let rows = this.#rows.get(schedule);
    if (!rows) {
      rows = this.#schedules.occurrences(schedule) ?? new Map();
      this.#rows.set(schedule, rows);
    }
    return rows;
  }

  #admit(term: Term): void {
    if (!this.#terms.admits(term)) throw staleTerm(term);
  }
}
