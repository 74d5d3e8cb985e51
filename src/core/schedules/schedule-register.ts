/**
 * Schedules in a cluster where every node has its own store: each schedule is a register that a majority stores.
 *
 *     note (epoch, counter) = definition, next occurrence, and the runs that are intended and not known to be placed
 *
 * Only the leader writes, under its epoch. A peer stores the note with the highest version, and refuses epochs below
 * the highest that it knows. A new leader reads from a majority, takes the highest version of each note and writes it
 * back under its own epoch before anything else. A run is in a note that a majority stores before its job is placed,
 * and is removed from the note only when the job is certainly at its target: the next leader finds it there, with the
 * same id and target.
 *
 * So if a note lacks a run that a lower version had, that run needs no further action.
 *
 * The pause of a queue is a note in the same table, under a key that no schedule can have.
 */

import type { JobId, NodeName } from "../ids.ts";
import {
  decideOccurrences,
  type FiringFacts,
  type Occurrence,
  type Schedule,
  type ScheduleDefinition,
  type Timing,
} from "./schedule.ts";

export interface Version {
  readonly epoch: number;
  readonly counter: number;
}

/** Of a schedule from before its node was in a cluster. */
export const UNNOTED: Version = { epoch: 0, counter: 0 };

export function compareVersions(a: Version, b: Version): number {
  return a.epoch - b.epoch || a.counter - b.counter;
}

const TEMPLATE = ["task", "queue", "priority", "payload", "maxAttempts", "timeoutMs"] as const;
const DEFINITION = ["name", "timing", ...TEMPLATE, "missed", "missedMax", "overlap"] as const;

export type RunTemplate = Pick<ScheduleDefinition, (typeof TEMPLATE)[number]>;

export interface OpenRun {
  /** With the name of the schedule the key under which a target takes the job once. */
  readonly at: number;
  readonly runAt: number | null;
  /** Begins with the name of the target, which keeps the job. */
  readonly job: JobId;
  readonly target: NodeName;
}

export interface OpenRuns {
  /** Null: that of the schedule. So a payload is sent once; a replaced schedule does not change intended runs. */
  readonly template: RunTemplate | null;
  readonly runs: readonly OpenRun[];
}

export interface ScheduleNote {
  readonly name: string;
  readonly version: Version;
  readonly schedule: Schedule | null;
  readonly changedAt: number;
  /** No later occurrence has been noted. Survives a removal, as occurrences do. */
  readonly notedThrough: number | null;
  readonly open: readonly OpenRuns[];
  /** Only for a queue, which has no schedule. */
  readonly queue?: { readonly name: string; readonly paused: boolean };
}

export type Draft = Omit<ScheduleNote, "version">;

export interface OccurrenceRow extends Occurrence {
  readonly schedule: string;
  readonly job: JobId | null;
  readonly leaderEpoch: number;
  readonly notedAt: number;
}

export interface PlannedRun extends Occurrence {
  readonly run: (OpenRun & { readonly template: RunTemplate }) | null;
}

export interface Fired {
  readonly draft: Draft;
  readonly rows: readonly OccurrenceRow[];
  readonly verdicts: readonly ("fired" | "skipped" | "already")[];
  readonly runs: readonly OpenRun[];
}

// ---------------------------------------------------------------- definitions

export function putNote(
  note: ScheduleNote | undefined,
  definition: ScheduleDefinition,
  nextAt: number | null,
  now: number,
): { draft: Draft | null; schedule: Schedule; outcome: "created" | "replaced" | "unchanged" } {
  const known = note?.schedule;
  if (known && sameDefinition(known, definition)) {
    return { draft: null, schedule: known, outcome: "unchanged" };
  }
  const schedule: Schedule = known
    ? { ...withDefinition(known, definition), nextAt, updatedAt: now }
    : {
        ...definition,
        paused: false,
        createdAt: now,
        updatedAt: now,
        nextAt,
        lastFiredAt: null,
        lastJob: null,
        leaderEpoch: 0,
      };
  const draft: Draft = {
    name: definition.name,
    schedule,
    changedAt: now,
    notedThrough: note?.notedThrough ?? null,
    open: note ? pinned(note) : [],
  };
  return { draft, schedule, outcome: known ? "replaced" : "created" };
}

/** The definition as it was read (null: there was none) is replaced; null if it was changed since. */
export function reviseNote(
  note: ScheduleNote | undefined,
  from: ScheduleDefinition | null,
  definition: ScheduleDefinition,
  state: { readonly nextAt: number | null; readonly paused: boolean },
  now: number,
): { readonly draft: Draft; readonly schedule: Schedule } | null {
  const known = note?.schedule ?? null;
  if (!known || !from) {
    if (known || from) return null;
    const { draft, schedule } = putNote(note, definition, state.nextAt, now);
    return { draft: draft!, schedule };
  }
  if (!sameDefinition(known, from)) return null;
  const schedule = { ...withDefinition(known, definition), ...state, updatedAt: now };
  return { draft: { ...note!, schedule, changedAt: now, open: pinned(note!) }, schedule };
}

function withDefinition(known: Schedule, definition: ScheduleDefinition): Schedule {
  const { declared: _gone, ...rest } = known;
  return { ...rest, ...definition };
}

export function removeNote(note: ScheduleNote, now: number): Draft {
  return { ...note, schedule: null, changedAt: now, open: pinned(note) };
}

export function pauseNote(note: ScheduleNote, paused: boolean, nextAt: number | null, now: number): Draft {
  return { ...note, schedule: { ...note.schedule!, paused, nextAt, updatedAt: now }, changedAt: now };
}

/** Intended runs keep their template. */
function pinned({ open, schedule }: ScheduleNote): readonly OpenRuns[] {
  return open.map((group) => (group.template ? group : { ...group, template: templateOf(schedule!) }));
}

// ---------------------------------------------------------------- queues

/** Names of schedules have no blank. */
export const QUEUE_KEYS = "queue ";

export function queueNote(queue: string, paused: boolean, now: number): Draft {
  return {
    name: `${QUEUE_KEYS}${queue}`,
    queue: { name: queue, paused },
    schedule: null,
    changedAt: now,
    notedThrough: null,
    open: [],
  };
}

/** A schedule that was removed, or a queue that was resumed. */
export function isTombstone({ schedule, queue, open }: Draft): boolean {
  return !schedule && !queue?.paused && open.length === 0;
}

/** Of a schedule that no leader has noted yet. */
export function unnoted(schedule: Schedule): ScheduleNote {
  const { name, updatedAt, lastFiredAt } = schedule;
  return { name, version: UNNOTED, schedule, changedAt: updatedAt, notedThrough: lastFiredAt, open: [] };
}

export function definitionOf(schedule: ScheduleDefinition): ScheduleDefinition {
  const definition = fieldsOf(schedule, DEFINITION);
  return schedule.declared ? { ...definition, declared: schedule.declared } : definition;
}

export function sameDefinition(a: ScheduleDefinition, b: ScheduleDefinition): boolean {
  const { timing: timingA, declared: declaredA, ...restA } = definitionOf(a);
  const { timing: timingB, declared: declaredB, ...restB } = definitionOf(b);
  if (!sameFields(restA, restB) || !sameFields<Timing>(timingA, timingB)) return false;
  return JSON.stringify(declaredA) === JSON.stringify(declaredB);
}

function sameFields<T extends object>(a: T, b: T): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]) as Set<keyof T>;
  return [...names].every((name) => a[name] === b[name]);
}

export function templateOf(from: RunTemplate): RunTemplate {
  return fieldsOf(from, TEMPLATE);
}

function fieldsOf<T, Name extends keyof T>(from: T, names: readonly Name[]): Pick<T, Name> {
  return Object.fromEntries(names.map((name) => [name, from[name]])) as Pick<T, Name>;
}

// ---------------------------------------------------------------- occurrences

export interface NoteFiring extends FiringFacts {
  readonly nextAt: number | null;
  readonly epoch: number;
  readonly now: number;
}

export function fireNote(note: ScheduleNote, planned: readonly PlannedRun[], facts: NoteFiring): Fired {
  const { epoch, now } = facts;
  let schedule: Schedule = { ...note.schedule!, nextAt: facts.nextAt, leaderEpoch: epoch };
  let notedThrough = note.notedThrough;
  const rows: OccurrenceRow[] = [];
  const fired: NonNullable<PlannedRun["run"]>[] = [];
  const decided = decideOccurrences(planned, facts);
  for (const one of decided) {
    if (one.verdict === "already") continue;
    const { at } = one;
    notedThrough = Math.max(notedThrough ?? at, at);
    const outcome =
      one.verdict === "fired"
        ? { do: "fire" as const, reason: null, job: one.run.job }
        : { do: "skip" as const, reason: one.reason, job: null };
    rows.push({ schedule: note.name, at, ...outcome, leaderEpoch: epoch, notedAt: now });
    if (one.verdict === "skipped") continue;
    fired.push(one.run);
    schedule = { ...schedule, lastFiredAt: at, lastJob: one.run.job };
  }
  const verdicts = decided.map(({ verdict }) => verdict);
  const draft: Draft = { ...note, schedule, notedThrough, open: [...note.open, ...grouped(fired, schedule)] };
  return { draft, rows, verdicts, runs: fired.map(runOf) };
}

function grouped(runs: readonly NonNullable<PlannedRun["run"]>[], schedule: Schedule): OpenRuns[] {
  const own = templateOf(schedule);
  const groups: { template: RunTemplate | null; runs: OpenRun[] }[] = [];
  for (const run of runs) {
    const template = sameFields(run.template, own) ? null : run.template;
    const last = groups.at(-1);
    const fits =
      last && (last.template && template ? sameFields(last.template, template) : last.template === template);
    if (fits) last.runs.push(runOf(run));
    else groups.push({ template, runs: [runOf(run)] });
  }
  return groups;
}

function runOf({ at, runAt, job, target }: OpenRun): OpenRun {
  return { at, runAt, job, target };
}

export interface RunToPlace extends OpenRun {
  readonly template: RunTemplate;
}

export function openRuns(note: Pick<ScheduleNote, "open" | "schedule">): RunToPlace[] {
  return note.open.flatMap(({ template, runs }) =>
    runs.map((run) => ({ ...run, template: template ?? templateOf(note.schedule!) })),
  );
}

/** Without runs that are at their targets; the same object if there are none. */
export function closeRuns<N extends Draft>(note: N, done: (run: OpenRun) => boolean): N {
  if (!note.open.some(({ runs }) => runs.some(done))) return note;
  const open = note.open
    .map((group) => ({ ...group, runs: group.runs.filter((run) => !done(run)) }))
    .filter(({ runs }) => runs.length > 0);
  return { ...note, open };
}

/** New targets and ids for runs whose targets certainly do not have the jobs, by instant. */
export function moveRuns(
  note: ScheduleNote,
  moves: ReadonlyMap<number, Pick<OpenRun, "job" | "target">>,
  { epoch, now }: Pick<NoteFiring, "epoch" | "now">,
): { draft: Draft; rows: readonly OccurrenceRow[] } {
  const rows: OccurrenceRow[] = [];
  let { schedule } = note;
  const move = (run: OpenRun): OpenRun => {
    const to = moves.get(run.at);
    if (!to) return run;
    if (schedule?.lastJob === run.job) schedule = { ...schedule, lastJob: to.job };
    const noted = { leaderEpoch: epoch, notedAt: now };
    rows.push({ schedule: note.name, at: run.at, do: "fire", reason: null, job: to.job, ...noted });
    return { ...run, ...to };
  };
  const open = note.open.map((group) => ({ ...group, runs: group.runs.map(move) }));
  return { draft: { ...note, schedule, open }, rows };
}

/** A newer note has no such run, or has it at another node: the request is late. */
function comesLate(known: ScheduleNote | undefined, asked: Version, run: OpenRun): boolean {
  if (!known || compareVersions(known.version, asked) <= 0) return false;
  return !known.open.some(({ runs }) =>
    runs.some(({ at, target }) => at === run.at && target === run.target),
  );
}

/** The job that the target took, or null if it refused the run under this version. */
export interface PlacedRun {
  readonly job: JobId | null;
  readonly version: Version;
}

/**
 * The answer of a target before it stores the job; null if it may. A refusal also holds for earlier requests that
 * arrive later, so that the leader may go elsewhere.
 */
export function placedVerdict(
  known: { readonly note: ScheduleNote | undefined; readonly placed: PlacedRun | undefined },
  asked: Version,
  run: OpenRun,
): "already" | "absent" | null {
  if (comesLate(known.note, asked, run) || (known.placed && known.placed.job !== null)) return "already";
  return known.placed && compareVersions(asked, known.placed.version) <= 0 ? "absent" : null;
}

/**
 * Whether a target may forget its answer, after `next` has replaced `known`. One note without the run is not enough: if
 * nobody else has it, the next leader asks again. The second note of a leader follows the confirmation of the first by
 * a majority.
 */
export function mayForget(known: ScheduleNote | undefined, next: ScheduleNote, at: number): boolean {
  if (known?.version.epoch !== next.version.epoch) return false;
  return ![known, next].some(({ open }) => open.some(({ runs }) => runs.some((run) => run.at === at)));
}

/** A row gives way to one of a newer term; of the same term only to that of a newer note. */
export function rowGivesWay(
  known: { leaderEpoch: number },
  row: { leaderEpoch: number },
  newer: boolean,
): boolean {
  return row.leaderEpoch > known.leaderEpoch || (newer && row.leaderEpoch === known.leaderEpoch);
}
