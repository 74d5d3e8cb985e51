/**
 * Schedules and the outcome of their occurrences in the store. `fire` notes occurrences, submits their jobs and sets the
 * next instant in one transaction under the leader's term, so that each occurrence runs at most once.
 *
 * When a schedule is due is not decided here (core/schedules/schedule.ts).
 */

import { isDeepStrictEqual } from "node:util";
import type { JobId, NodeName } from "../core/ids.ts";
import { sameDefinition, type OccurrenceRow } from "../core/schedules/schedule-register.ts";
import {
  decideOccurrences,
  type Occurrence,
  type Schedule,
  type ScheduleDefinition,
} from "../core/schedules/schedule.ts";
import type { Term } from "../core/leadership/term.ts";
import { call, each, query, type Script, type Scripts, sql } from "./script.ts";
import type { Author, NewJob } from "./store.ts";

export interface ScheduleStore {
  /** Creates or replaces by name. The same definition again changes nothing, not even `nextAt`. */
  put(definition: ScheduleDefinition, nextAt: number | null): Promise<PutSchedule>;
  /**
   * Replaces the definition that was read, or creates it where none was (null), with the state that goes with it. Null, and nothing is
   * written, if somebody has changed it since.
   */
  revise(
    from: ScheduleDefinition | null,
    definition: ScheduleDefinition,
    state: { readonly nextAt: number | null; readonly paused: boolean },
  ): Promise<Schedule | null>;
  get(name: string): Promise<Schedule | null>;
  list(): Promise<readonly Schedule[]>;
  remove(name: string): Promise<boolean>;
  /** A resumed schedule continues at `nextAt`. */
  setPaused(name: string, paused: boolean, nextAt: number | null): Promise<Schedule | null>;

  /** In one transaction. An occurrence that is noted already is answered "already" and submits no job. */
  fire(firing: Firing, author: Author, fence: Term): Promise<readonly FireVerdict[]>;

  /** The newest first, or those of the given instants. */
  history(name: string, limitOrInstants: number | readonly number[]): Promise<readonly NotedOccurrence[]>;
}

export interface PutSchedule {
  readonly schedule: Schedule;
  readonly outcome: "created" | "replaced" | "unchanged";
}

export interface Firing {
  readonly schedule: string;
  readonly occurrences: readonly (Occurrence & { readonly job: NewJob | null })[];
  /** The next occurrence afterwards. */
  readonly nextAt: number | null;
  /** Otherwise the schedule was changed since it was read, and nothing fires. */
  readonly expectedNextAt: number | null;
  /** `skip`: an occurrence is skipped while the job of the previous one is unfinished. */
  readonly overlap: "allow" | "skip";
}

export type FireVerdict = "fired" | "skipped" | "already" | "changed";

export interface NotedOccurrence extends OccurrenceRow {
  /** Without a shared store: the node that has not confirmed the job yet. */
  readonly awaits?: NodeName;
}

/** How a store handles jobs inside the transaction of a firing. */
export interface FiringJobs {
  isUnfinished(job: JobId): boolean | Promise<boolean>;
  submit(jobs: readonly NewJob[]): unknown;
}

const COLUMNS = `definition, paused::int AS paused, created_at AS "createdAt", updated_at AS "updatedAt", next_at AS "nextAt",
  last_fired_at AS "lastFiredAt", last_job AS "lastJob", leader_epoch AS "leaderEpoch"`;
const ONE = sql("schedule-get", `SELECT ${COLUMNS} FROM baton.schedule WHERE name = $1`);
const ALL = sql("schedule-list", `SELECT ${COLUMNS} FROM baton.schedule ORDER BY name COLLATE "C"`);
const HOLD = sql("schedule-hold", `SELECT ${COLUMNS} FROM baton.schedule WHERE name = $1 FOR UPDATE`);
const INSERT = sql(
  "schedule-insert",
  `INSERT INTO baton.schedule (name, definition, paused, created_at, updated_at, next_at, leader_epoch)
   VALUES ($2, $3, 1 = 0, {now}, {now}, $4::bigint, 0) ON CONFLICT DO NOTHING RETURNING ${COLUMNS}`,
);
const REPLACE = sql(
  "schedule-replace",
  `UPDATE baton.schedule SET definition = $3, updated_at = {now}, next_at = $4::bigint WHERE name = $2 RETURNING ${COLUMNS}`,
);
const REVISE = sql(
  "schedule-revise",
  `UPDATE baton.schedule SET definition = $3, updated_at = {now}, next_at = $4::bigint, paused = ($5::int = 1) WHERE name = $2 RETURNING ${COLUMNS}`,
);
const REMOVE = sql("schedule-remove", "DELETE FROM baton.schedule WHERE name = $1 RETURNING name");
const PAUSE = sql(
  "schedule-pause",
  `UPDATE baton.schedule SET paused = ($3::int = 1), next_at = $4::bigint, updated_at = {now} WHERE name = $2 RETURNING ${COLUMNS}`,
);
const OCCURRENCE = `schedule, at, CASE WHEN fired THEN 'fire' ELSE 'skip' END AS "do", reason, job, leader_epoch AS "leaderEpoch",
  noted_at AS "notedAt"`;
const NOTED = sql(
  "schedule-noted",
  `SELECT ${OCCURRENCE} FROM baton.occurrence WHERE schedule = $1 AND at = $2::bigint`,
);
const HISTORY = sql(
  "schedule-history",
  `SELECT ${OCCURRENCE} FROM baton.occurrence WHERE schedule = $1 ORDER BY at DESC LIMIT $2`,
);
const NOTE = sql(
  "schedule-note",
  `INSERT INTO baton.occurrence (schedule, at, noted_at, leader_epoch, fired, reason, job)
   VALUES ($2, $3::bigint, {now}, $4::bigint, $5::int = 1, $6, $7)`,
);
const ADVANCE = sql(
  "schedule-advance",
  `UPDATE baton.schedule SET next_at = $2::bigint, leader_epoch = $3::bigint, last_fired_at = coalesce($4::bigint, last_fired_at),
     last_job = coalesce($5, last_job) WHERE name = $1`,
);

interface Row extends Omit<Schedule, keyof ScheduleDefinition | "paused"> {
  readonly definition: string;
  readonly paused: number;
}

/** Everything but `fire`, which needs the store's own way to submit jobs. */
export function scheduleStore(scripts: Scripts, fire: ScheduleStore["fire"]): ScheduleStore {
  return {
    put: (definition, nextAt) => scripts.write(() => put(definition, nextAt)),
    revise: (from, definition, state) => scripts.write(() => revise(from, definition, state)),
    get: (name) => scripts.read(() => readSchedule(name)),
    list: () =>
      scripts.read(function* () {
        return (yield* query<Row>(ALL)).map(toSchedule);
      }),
    remove: (name) =>
      scripts.write(function* () {
        return (yield* query(REMOVE, name)).length === 1;
      }),
    setPaused: (name, paused, nextAt) =>
      scripts.write(function* () {
        const [row] = yield* query<Row>(PAUSE, name, paused ? 1 : 0, nextAt);
        return row ? toSchedule(row) : null;
      }),
    fire,
    history: (name, which) =>
      scripts.read(() =>
        typeof which === "number"
          ? query<NotedOccurrence>(HISTORY, name, which)
          : readOccurrences(name, which),
      ),
  };
}

export function* readSchedule(name: string): Script<Schedule | null> {
  const [row] = yield* query<Row>(ONE, name);
  return row ? toSchedule(row) : null;
}

export function* readOccurrences(
  schedule: string,
  instants: readonly number[],
): Script<readonly NotedOccurrence[]> {
  const rows = yield instants.map((at) => ({ sql: NOTED, values: [schedule, at] }));
  return (rows as readonly (readonly NotedOccurrence[])[]).flat();
}

function* put(definition: ScheduleDefinition, nextAt: number | null): Script<PutSchedule> {
  const { name } = definition;
  const text = JSON.stringify(definition);
  const [created] = yield* query<Row>(INSERT, name, text, nextAt);
  if (created) return { schedule: toSchedule(created), outcome: "created" };
  const [known] = yield* query<Row>(HOLD, name);
  if (known && isDeepStrictEqual(JSON.parse(known.definition), JSON.parse(text))) {
    return { schedule: toSchedule(known), outcome: "unchanged" };
  }
  const [written] = yield* query<Row>(known ? REPLACE : INSERT, name, text, nextAt);
  return { schedule: toSchedule(written!), outcome: known ? "replaced" : "created" };
}

function* revise(
  from: ScheduleDefinition | null,
  definition: ScheduleDefinition,
  { nextAt, paused }: { readonly nextAt: number | null; readonly paused: boolean },
): Script<Schedule | null> {
  const { name } = definition;
  const text = JSON.stringify(definition);
  if (!from) {
    const [created] = yield* query<Row>(INSERT, name, text, nextAt);
    return created ? toSchedule(created) : null;
  }
  const [known] = yield* query<Row>(HOLD, name);
  if (!known || !sameDefinition(JSON.parse(known.definition) as ScheduleDefinition, from)) return null;
  const [written] = yield* query<Row>(REVISE, name, text, nextAt, paused ? 1 : 0);
  return toSchedule(written!);
}

/** Runs inside the transaction of a leader's write, after the check of its term. */
export function* fireSchedule(
  firing: Firing,
  { epoch }: Term,
  jobs: FiringJobs,
): Script<readonly FireVerdict[]> {
  const { schedule: name, occurrences, overlap, nextAt } = firing;
  const [schedule] = yield* query<Row>(HOLD, name);
  if (!schedule || schedule.paused === 1 || schedule.nextAt !== firing.expectedNextAt) {
    return occurrences.map((): FireVerdict => "changed");
  }
  const noted = yield* readOccurrences(
    name,
    occurrences.map(({ at }) => at),
  );
  const last = schedule.lastJob as JobId | null;
  const decided = decideOccurrences(
    occurrences.map(({ job, ...occurrence }) => ({ ...occurrence, run: job })),
    {
      noted: new Set(noted.map(({ at }) => at)),
      overlap,
      predecessorRuns: overlap === "skip" && last !== null && (yield* call(() => jobs.isUnfinished(last))),
    },
  );
  const notes = decided.filter((one) => one.verdict !== "already");
  const fired = notes.filter((one) => one.verdict === "fired");
  yield* each(
    NOTE,
    notes.map((one) => {
      const job = one.verdict === "fired" ? one.run.id : null;
      return [name, one.at, epoch, job ? 1 : 0, one.verdict === "skipped" ? one.reason : null, job];
    }),
  );
  const newest = fired.at(-1);
  yield* query(ADVANCE, name, nextAt, epoch, newest?.at ?? null, newest?.run.id ?? null);
  if (fired.length > 0) yield* call(() => jobs.submit(fired.map(({ run }) => run)));
  return decided.map(({ verdict }) => verdict);
}

function toSchedule({ definition, paused, ...rest }: Row): Schedule {
  return { ...(JSON.parse(definition) as ScheduleDefinition), ...rest, paused: paused === 1 };
}
