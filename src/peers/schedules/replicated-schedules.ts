/**
 * The schedules of a cluster where every node has its own store.
 *
 * Guaranteed, as long as a majority of the disks survives: an acknowledged change is not lost; no occurrence creates
 * two jobs; no due occurrence is forgotten. Definitions are on every node, so reads need no other node and may be
 * slightly old. Only the leader changes and fires schedules, and it needs a majority
 * (core/schedules/schedule-register.ts).
 *
 * Not guaranteed: that an occurrence runs soon if its node falls silent while it receives the job. It is unknown
 * whether the job is there, so the leader waits for that node, visibly (`awaits` in the history); the schedule itself
 * continues.
 */

import type { Leadership } from "../../leadership/coordination.ts";
import { BatonError } from "../../core/errors.ts";
import { jobId, parseJobId } from "../../core/ids.ts";
import { isFinal } from "../../core/jobs/job.ts";
import type { Schedule, ScheduleDefinition } from "../../core/schedules/schedule.ts";
import type { PlannedRun, ScheduleNote } from "../../core/schedules/schedule-register.ts";
import {
  fireNote,
  openRuns,
  pauseNote,
  putNote,
  removeNote,
  reviseNote,
  templateOf,
} from "../../core/schedules/schedule-register.ts";
import { sameTerm, type Duty, type Term } from "../../core/leadership/term.ts";
import type { Platform } from "../../platform/platform.ts";
import type {
  Author,
  FireVerdict,
  Firing,
  NewJob,
  NotedOccurrence,
  ScheduleStore,
} from "../../store/store.ts";
import { Replicas, type ReplicasOptions } from "./replicas.ts";
import { scheduleHandlers, type ScheduleHandlersOptions } from "./schedule-handlers.ts";
import { RunPlacement, type Targets } from "./run-placement.ts";
import { MajorityTable, type Change } from "./majority-table.ts";
import { maintainSchedules } from "./schedule-maintenance.ts";

export interface ReplicatedSchedulesOptions extends ReplicasOptions, ScheduleHandlersOptions {
  readonly leadership: Pick<Leadership, "require" | "held">;
  readonly targets: Targets;
}

type SchedulesPlatform = Pick<Platform, "identity" | "events" | "clock" | "log">;

interface LedTerm {
  readonly term: MajorityTable;
  readonly placing: RunPlacement;
}

export class ReplicatedSchedules implements ScheduleStore {
  /** For the duty that fires: it reads what its term has taken over. A node's own copy may lack a schedule. */
  readonly leading: Pick<ScheduleStore, "list" | "get" | "fire">;
  /** In each term, in addition to the duty that fires. */
  readonly duty: Duty;
  readonly handlers: ReturnType<typeof scheduleHandlers>;
  /** All members, each with a copy of the table. */
  readonly replicas: Replicas;
  readonly #platform: SchedulesPlatform;
  readonly #options: ReplicatedSchedulesOptions;
  #current: LedTerm | null = null;

  constructor(platform: SchedulesPlatform, options: ReplicatedSchedulesOptions) {
    this.#platform = platform;
    this.#options = options;
    const handlers = (this.handlers = scheduleHandlers(platform, options));
    const replicas = (this.replicas = new Replicas(platform.identity.name, options, handlers));
    this.leading = {
      list: async () => (await this.#led()).notes().flatMap(({ schedule }) => schedule ?? []),
      get: async (name) => (await this.#led()).note(name)?.schedule ?? null,
      fire: (...firing) => this.fire(...firing),
    };
    this.duty = async (term, signal) => {
      if (this.#current && this.#current.term.term.epoch > term.epoch) return;
      const { schedules } = options.store;
      await maintainSchedules({ ...platform, ...this.#ledTerm(term), replicas, schedules, signal });
    };
  }

  /** A change is computed from what was read, and a leader's own copy may have an occurrence that no majority ever noted. */
  get(name: string): Promise<Schedule | null> {
    return this.#options.leadership.held() ? this.leading.get(name) : this.#options.store.schedules.get(name);
  }

  list(): Promise<readonly Schedule[]> {
    return this.#options.store.schedules.list();
  }

  async history(name: string, which: number | readonly number[]): Promise<readonly NotedOccurrence[]> {
    const rows = await this.#options.store.schedules.history(name, which);
    const [note] = (await this.#options.store.scheduleNotes.read({ name })).notes;
    if (!note || note.open.length === 0) return rows;
    const open = openRuns(note).filter((run) => !this.#current?.placing.isDone(name, run));
    const awaited = new Map(open.map(({ at, target }) => [at, target]));
    return rows.map((row) => {
      const awaits = awaited.get(row.at);
      return awaits ? { ...row, awaits } : row;
    });
  }

  put(
    definition: ScheduleDefinition,
    nextAt: number | null,
  ): Promise<{ schedule: Schedule; outcome: "created" | "replaced" | "unchanged" }> {
    const wanted = structuredClone(definition);
    return this.change(wanted.name, (note, now) => {
      const { draft, ...result } = putNote(note, wanted, nextAt, now);
      return { draft, result };
    });
  }

  revise(
    from: ScheduleDefinition | null,
    definition: ScheduleDefinition,
    state: { readonly nextAt: number | null; readonly paused: boolean },
  ): Promise<Schedule | null> {
    const wanted = structuredClone(definition);
    return this.change(wanted.name, (note, now) => {
      const revised = reviseNote(note, from, wanted, state, now);
      return revised ? { draft: revised.draft, result: revised.schedule } : { draft: null, result: null };
    });
  }

  remove(name: string): Promise<boolean> {
    return this.change(name, (note, now) =>
      note?.schedule ? { draft: removeNote(note, now), result: true } : { draft: null, result: false },
    );
  }

  setPaused(name: string, paused: boolean, nextAt: number | null): Promise<Schedule | null> {
    return this.change(name, (note, now) => {
      if (!note?.schedule) return { draft: null, result: null };
      const draft = pauseNote(note, paused, nextAt, now);
      return { draft, result: draft.schedule };
    });
  }

  /** The author is the node that gets the job; what a leader writes carries its term. */
  async fire(firing: Firing, _author: Author, fence: Term): Promise<readonly FireVerdict[]> {
    const { term, placing } = this.#ledTerm(fence);
    const { schedule: name, expectedNextAt, overlap, nextAt } = firing;
    const planned = firing.occurrences.map((occurrence) => plan(occurrence, placing));
    const verdicts = await term.change<readonly FireVerdict[]>(name, async (note) => {
      const schedule = note?.schedule;
      if (!schedule || schedule.paused || schedule.nextAt !== expectedNextAt) {
        return { draft: null, result: planned.map(() => "changed") };
      }
      const noted = await this.#noted(term, note, planned);
      const predecessorRuns = overlap === "skip" && (await this.#isUnfinished(term, note));
      const now = this.#platform.clock.now();
      const facts = { nextAt, noted, overlap, predecessorRuns, epoch: fence.epoch, now };
      const { draft, rows, runs, verdicts: result } = fireNote(note, planned, facts);
      placing.mint(name, runs);
      return { draft, rows, result };
    });
    if (verdicts.includes("fired")) await placing.attempt(term, [name]);
    return verdicts;
  }

  /** Changes one note of the table under the own term: NOT_LEADER, or STORE_UNAVAILABLE without a majority. */
  async change<T>(
    name: string,
    step: (note: ScheduleNote | undefined, now: number) => Change<T>,
  ): Promise<T> {
    const { term } = this.#ledTerm(this.#options.leadership.require());
    return term.change(name, (note) => step(note, this.#platform.clock.now()));
  }

  /** A majority of the present members has the whole table, so that a change of the members loses nothing of it. */
  async settle(): Promise<void> {
    await (await this.#led()).settle();
  }

  async #led(): Promise<MajorityTable> {
    const { term } = this.#ledTerm(this.#options.leadership.require());
    await term.ready();
    return term;
  }

  #ledTerm(term: Term): LedTerm {
    const known = this.#current;
    if (known && sameTerm(known.term.term, term)) return known;
    if (known && known.term.term.epoch >= term.epoch) {
      throw new BatonError(
        "STALE_EPOCH",
        `term ${term.epoch} is over; this node knows ${known.term.term.epoch}`,
        {
          epoch: term.epoch,
          newest: known.term.term.epoch,
        },
      );
    }
    const placing = new RunPlacement(this.#platform, this.replicas, this.#options.targets);
    const done: RunPlacement["isDone"] = (schedule, run) => placing.isDone(schedule, run);
    const led = { term: new MajorityTable(this.#platform, term, this.replicas, done), placing };
    this.#current = led;
    return led;
  }

  /**
   * Which of these are noted already. Only a schedule that was put back has any that early, so a majority is asked; a
   * row behind `notedThrough` is what an older leader left that had no majority, and counts for nothing.
   */
  async #noted(
    term: MajorityTable,
    note: ScheduleNote,
    planned: readonly PlannedRun[],
  ): Promise<ReadonlySet<number>> {
    const through = note.notedThrough ?? -Infinity;
    const instants = planned.map(({ at }) => at).filter((at) => at <= through);
    if (instants.length === 0) return new Set();
    const answers = await this.replicas.majority("occurrences cannot be looked up", (node) =>
      term.ask(node, "noted", { schedule: note.name, instants }),
    );
    return new Set([...answers.values()].flatMap(({ occurrences }) => occurrences.map(({ at }) => at)));
  }

  /** If the owner does not answer, the job is assumed to run: an occurrence is skipped rather than run twice at once. */
  async #isUnfinished(term: MajorityTable, { name, schedule, open }: ScheduleNote): Promise<boolean> {
    const job = schedule!.lastJob;
    const owner = job === null ? undefined : parseJobId(job)?.birthplace;
    // What a node that was removed still runs is no longer the cluster's; waiting for it would stop the schedule for ever.
    if (!owner || !this.replicas.members().includes(owner)) return false;
    if (open.some(({ runs }) => runs.some((run) => run.job === job))) return true;
    const answer = await term.ask(owner, "job", { job: job as NewJob["id"] });
    if (answer.got === "answer") return answer.value.status !== null && !isFinal(answer.value.status);
    this.#platform.log.warn(
      { schedule: name, job, owner, reason: answer.reason },
      "it is unknown whether the job before has ended; this occurrence is taken to overlap it",
    );
    return true;
  }
}

function plan(occurrence: Firing["occurrences"][number], placing: RunPlacement): PlannedRun {
  const { at, reason, job } = occurrence;
  if (!job) return { at, do: occurrence.do, reason, run: null };
  const target = placing.choose(job);
  const uuid = parseJobId(job.id)?.uuid;
  if (!uuid) throw new BatonError("BAD_ID", `${job.id} is not the id of a job`, { field: "job.id" });
  const run = { at, runAt: job.runAt, job: jobId(target, uuid), target, template: templateOf(job) };
  return { at, do: occurrence.do, reason, run };
}
