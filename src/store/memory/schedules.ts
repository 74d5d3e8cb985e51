/**
 * Schedules and their occurrences in memory. The methods after `history` serve schedule-notes.ts and run inside its
 * turn.
 */

import { isDeepStrictEqual } from "node:util";
import { isFinal } from "../../core/jobs/job.ts";
import type { JobId } from "../../core/ids.ts";
import type { Schedule, ScheduleDefinition } from "../../core/schedules/schedule.ts";
import { definitionOf } from "../../core/schedules/schedule-register.ts";
import type { Term } from "../../core/leadership/term.ts";
import type { Author, FireVerdict, Firing, NewJob, NotedOccurrence, ScheduleStore } from "../store.ts";
import type { StoreCache } from "./jobs/store-cache.ts";
import type { MemoryTerms } from "./terms.ts";
import type { Turn } from "./turn.ts";

interface Kept {
  definition: ScheduleDefinition;
  schedule: Schedule;
  readonly occurrences: Map<number, NotedOccurrence>;
}

type Planned = Firing["occurrences"][number];

export class MemorySchedules implements ScheduleStore {
  readonly #ledger: StoreCache;
  readonly #terms: MemoryTerms;
  readonly #turn: Turn;
  readonly #schedules = new Map<string, Kept>();

  constructor(options: { readonly ledger: StoreCache; readonly terms: MemoryTerms; readonly turn: Turn }) {
    this.#ledger = options.ledger;
    this.#terms = options.terms;
    this.#turn = options.turn;
  }

  put(
    definition: ScheduleDefinition,
    nextAt: number | null,
  ): Promise<{ schedule: Schedule; outcome: "created" | "replaced" | "unchanged" }> {
    return this.#turn((now) => {
      const wanted = structuredClone(definition);
      const kept = this.#schedules.get(wanted.name);
      if (kept && isDeepStrictEqual(kept.definition, wanted)) {
        return { schedule: kept.schedule, outcome: "unchanged" };
      }
      if (kept) {
        kept.definition = wanted;
        kept.schedule = { ...kept.schedule, ...wanted, nextAt, updatedAt: now };
        return { schedule: kept.schedule, outcome: "replaced" };
      }
      const schedule: Schedule = {
        ...wanted,
        paused: false,
        createdAt: now,
        updatedAt: now,
        nextAt,
        lastFiredAt: null,
        lastJob: null,
        leaderEpoch: 0,
      };
      this.#schedules.set(wanted.name, { definition: wanted, schedule, occurrences: new Map() });
      return { schedule, outcome: "created" };
    });
  }

  get(name: string): Promise<Schedule | null> {
    return this.#turn(() => this.#schedules.get(name)?.schedule ?? null);
  }

  list(): Promise<readonly Schedule[]> {
    return this.#turn(() =>
      [...this.#schedules.values()].map((kept) => kept.schedule).sort((a, b) => (a.name < b.name ? -1 : 1)),
    );
  }

  remove(name: string): Promise<boolean> {
    return this.#turn(() => this.#schedules.delete(name));
  }

  setPaused(name: string, paused: boolean, nextAt: number | null): Promise<Schedule | null> {
    return this.#turn((now) => {
      const kept = this.#schedules.get(name);
      if (!kept) return null;
      kept.schedule = { ...kept.schedule, paused, nextAt, updatedAt: now };
      return kept.schedule;
    });
  }

  fire(firing: Firing, author: Author, fence: Term): Promise<readonly FireVerdict[]> {
    return this.#turn((now) => {
      this.#terms.require(fence);
      const planned = firing.occurrences.map((one) => ({ ...one, job: one.job && { ...one.job } }));
      const kept = this.#schedules.get(firing.schedule);
      if (!kept || kept.schedule.paused || kept.schedule.nextAt !== firing.expectedNextAt) {
        return planned.map(() => "changed");
      }

      const by = { ...author, leaderEpoch: fence.epoch };
      const verdicts = planned.map((one) => this.#note(kept, one, firing.overlap, by, now));
      kept.schedule = { ...kept.schedule, nextAt: firing.nextAt, leaderEpoch: fence.epoch };
      return verdicts;
    });
  }

  history(name: string, limit: number): Promise<readonly NotedOccurrence[]> {
    return this.#turn(() => {
      const noted = [...(this.#schedules.get(name)?.occurrences.values() ?? [])];
      return noted.sort((a, b) => b.at - a.at).slice(0, limit);
    });
  }

  // ------------------------------------------------------------ for notes, inside their turn

  one(name: string): Schedule | null {
    return this.#schedules.get(name)?.schedule ?? null;
  }

  all(): readonly Schedule[] {
    return [...this.#schedules.values()].map(({ schedule }) => schedule);
  }

  occurrences(name: string): Map<number, NotedOccurrence> | undefined {
    return this.#schedules.get(name)?.occurrences;
  }

  /** Shows what a leader has noted; null removes it. */
  show(name: string, schedule: Schedule | null, occurrences: Map<number, NotedOccurrence>): void {
    if (!schedule) this.#schedules.delete(name);
    else this.#schedules.set(name, { definition: definitionOf(schedule), schedule, occurrences });
  }

  #note(kept: Kept, planned: Planned, overlap: "allow" | "skip", author: Author, now: number): FireVerdict {
    const { at } = planned;
    if (kept.occurrences.has(at)) return "already";
    const { leaderEpoch } = author;
    const noted = { schedule: kept.schedule.name, at, leaderEpoch, notedAt: now };
    if (planned.do === "fire" && overlap === "skip" && this.#unfinished(kept.schedule.lastJob)) {
      kept.occurrences.set(at, { ...noted, do: "skip", reason: "overlap", job: null });
      return "skipped";
    }
    if (planned.do === "skip") {
      kept.occurrences.set(at, { ...noted, do: "skip", reason: planned.reason, job: null });
      return "skipped";
    }
    const job = this.#submit(planned.job, kept.schedule.name, author, now);
    kept.occurrences.set(at, { ...noted, do: "fire", reason: null, job });
    kept.schedule = { ...kept.schedule, lastFiredAt: at, lastJob: job };
    return "fired";
  }

  #submit(job: NewJob | null, schedule: string, author: Author, now: number): JobId | null {
    return job && this.#ledger.add(job, author, schedule, now).id;
  }

  #unfinished(job: string | null): boolean {
    const entry = job === null ? undefined : this.#ledger.find(job as JobId);
    return entry !== undefined && !isFinal(entry.job.status);
  }
}
