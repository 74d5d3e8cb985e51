/**
 * Schedules and their occurrences in PostgreSQL. `fire` notes the occurrences, submits their jobs and sets the next
 * instant in one transaction under the leader's term, so that each occurrence runs at most once.
 */

import { isDeepStrictEqual } from "node:util";
import type { JobId } from "../../core/ids.ts";
import {
  type Decided,
  decideOccurrences,
  type Schedule,
  type ScheduleDefinition,
  type SkipReason,
} from "../../core/schedules/schedule.ts";
import type { Term } from "../../core/leadership/term.ts";
import { type Queryable, read, write } from "../../platform/drivers/postgres/postgres.ts";
import { int4s, int8s, texts } from "../../platform/drivers/postgres/arrays.ts";
import type { Author, Firing, FireVerdict, NewJob, NotedOccurrence, ScheduleStore } from "../store.ts";
import { type StoreCache, NOW, uuidOf } from "./jobs/store-cache.ts";
import type { Submit } from "./jobs/submit.ts";
import type { PostgresTerms } from "./terms.ts";

const COLUMNS =
  "name, definition, paused, created_at, updated_at, next_at, last_fired_at, last_job, leader_epoch";
const ONE = read("schedule-get", `SELECT ${COLUMNS} FROM baton.schedule WHERE name = $1`);
const ALL = read("schedule-list", `SELECT ${COLUMNS} FROM baton.schedule ORDER BY name`);
const HOLD = write("schedule-hold", `SELECT ${COLUMNS} FROM baton.schedule WHERE name = $1 FOR UPDATE`);
const INSERT = write(
  "schedule-insert",
  `INSERT INTO baton.schedule (name, definition, created_at, updated_at, next_at)
   SELECT $2, $3, now, now, $4 FROM (SELECT ${NOW} AS now) AS clock ON CONFLICT DO NOTHING RETURNING ${COLUMNS}`,
);
const REPLACE = write(
  "schedule-replace",
  `UPDATE baton.schedule SET definition = $3, updated_at = ${NOW}, next_at = $4 WHERE name = $2 RETURNING ${COLUMNS}`,
);
const REMOVE = write("schedule-remove", "DELETE FROM baton.schedule WHERE name = $1 RETURNING name");
const PAUSE = write(
  "schedule-pause",
  `UPDATE baton.schedule SET paused = $3, next_at = $4, updated_at = ${NOW} WHERE name = $2 RETURNING ${COLUMNS}`,
);
const NOTED = write(
  "schedule-noted",
  "SELECT at FROM baton.occurrence WHERE schedule = $1 AND at = ANY ($2::bigint[])",
);
const UNFINISHED = write(
  "schedule-unfinished",
  "SELECT FROM baton.job j JOIN baton.live l ON l.seq = j.seq WHERE j.id = $1",
);
const NOTE = write(
  "schedule-note",
  `INSERT INTO baton.occurrence (schedule, at, noted_at, leader_epoch, fired, reason, job)
   SELECT $2, a.at, now, $3, a.fired = 1, a.reason, a.job
   FROM (SELECT ${NOW} AS now) AS clock, unnest($4::bigint[], $5::int[], $6::text[], $7::text[]) AS a (at, fired, reason, job)`,
);
const ADVANCE = write(
  "schedule-advance",
  `UPDATE baton.schedule SET next_at = $2, leader_epoch = $3, last_fired_at = coalesce($4, last_fired_at),
     last_job = coalesce($5, last_job) WHERE name = $1`,
);
const HISTORY = read(
  "schedule-history",
  "SELECT at, noted_at, leader_epoch, fired, reason, job FROM baton.occurrence WHERE schedule = $1 ORDER BY at DESC LIMIT $2",
);

interface Row {
  readonly definition: string;
  readonly paused: boolean;
  readonly created_at: number;
  readonly updated_at: number;
  readonly next_at: number | null;
  readonly last_fired_at: number | null;
  readonly last_job: string | null;
  readonly leader_epoch: number;
}

interface HistoryRow {
  readonly at: number;
  readonly noted_at: number;
  readonly leader_epoch: number;
  readonly fired: boolean;
  readonly reason: SkipReason | null;
  readonly job: JobId | null;
}

type Put = { schedule: Schedule; outcome: "created" | "replaced" | "unchanged" };

export class PostgresSchedules implements ScheduleStore {
  readonly #ledger: StoreCache;
  readonly #terms: PostgresTerms;
  readonly #submit: Submit;

  constructor(parts: { ledger: StoreCache; terms: PostgresTerms; submit: Submit }) {
    this.#ledger = parts.ledger;
    this.#terms = parts.terms;
    this.#submit = parts.submit;
  }

  put(definition: ScheduleDefinition, nextAt: number | null): Promise<Put> {
    const text = JSON.stringify(definition);
    return this.#ledger.db.transaction(async (tx): Promise<Put> => {
      const values = [this.#ledger.now(), definition.name, text, nextAt];
      const [created] = await tx.query<Row>(INSERT, values);
      if (created) return { schedule: toSchedule(created), outcome: "created" };
      const [known] = await tx.query<Row>(HOLD, [definition.name]);
      if (known && isDeepStrictEqual(JSON.parse(known.definition), JSON.parse(text))) {
        return { schedule: toSchedule(known), outcome: "unchanged" };
      }
      const [replaced] = await tx.query<Row>(known ? REPLACE : INSERT, values);
      return { schedule: toSchedule(replaced!), outcome: known ? "replaced" : "created" };
    });
  }

  async get(name: string): Promise<Schedule | null> {
    const [row] = await this.#ledger.db.query<Row>(ONE, [name]);
    return row ? toSchedule(row) : null;
  }

  async list(): Promise<readonly Schedule[]> {
    return (await this.#ledger.db.query<Row>(ALL)).map(toSchedule);
  }

  async remove(name: string): Promise<boolean> {
    return (await this.#ledger.db.query(REMOVE, [name])).length === 1;
  }

  async setPaused(name: string, paused: boolean, nextAt: number | null): Promise<Schedule | null> {
    const [row] = await this.#ledger.db.query<Row>(PAUSE, [this.#ledger.now(), name, paused, nextAt]);
    return row ? toSchedule(row) : null;
  }

  async fire(firing: Firing, author: Author, fence: Term): Promise<readonly FireVerdict[]> {
    await this.#submit.learnNames(firing.occurrences.flatMap(({ job }) => job ?? []));
    const by = await this.#ledger.authorId({ ...author, leaderEpoch: fence.epoch });
    return this.#ledger.db.transaction(async (tx) => {
      await this.#terms.hold(tx, fence);
      const [schedule] = await tx.query<Row>(HOLD, [firing.schedule]);
      if (!schedule || schedule.paused || schedule.next_at !== firing.expectedNextAt) {
        return firing.occurrences.map((): FireVerdict => "changed");
      }
      const decided = await this.#decide(tx, firing, schedule);
      await this.#note(tx, firing, decided, fence.epoch);
      const jobs = decided.flatMap((one) => (one.verdict === "fired" ? [one.run] : []));
      await this.#submit.within(tx, jobs, by, firing.schedule);
      return decided.map(({ verdict }) => verdict);
    });
  }

  async history(name: string, limit: number): Promise<readonly NotedOccurrence[]> {
    const rows = await this.#ledger.db.query<HistoryRow>(HISTORY, [name, limit]);
    return rows.map((row) => ({
      schedule: name,
      at: row.at,
      do: row.fired ? "fire" : "skip",
      reason: row.reason,
      job: row.job,
      leaderEpoch: row.leader_epoch,
      notedAt: row.noted_at,
    }));
  }

  async #decide(tx: Queryable, firing: Firing, schedule: Row): Promise<Decided<NewJob>[]> {
    const { occurrences, overlap } = firing;
    const ats = int8s(occurrences.map(({ at }) => at));
    const noted = await tx.query<{ at: number }>(NOTED, [firing.schedule, ats]);
    return decideOccurrences(
      occurrences.map(({ job, ...occurrence }) => ({ ...occurrence, run: job })),
      {
        noted: new Set(noted.map(({ at }) => at)),
        overlap,
        predecessorRuns: overlap === "skip" && (await this.#unfinished(tx, schedule.last_job)),
      },
    );
  }

  async #note(tx: Queryable, firing: Firing, decided: Decided<NewJob>[], epoch: number): Promise<void> {
    const notes = decided.filter((one) => one.verdict !== "already");
    const last = notes.findLast((one) => one.verdict === "fired");
    await tx.query(NOTE, [
      this.#ledger.now(),
      firing.schedule,
      epoch,
      int8s(notes.map(({ at }) => at)),
      int4s(notes.map(({ verdict }) => (verdict === "fired" ? 1 : 0))),
      texts(notes.map((one) => (one.verdict === "skipped" ? one.reason : null))),
      texts(notes.map((one) => (one.verdict === "fired" ? one.run.id : null))),
    ]);
    await tx.query(ADVANCE, [firing.schedule, firing.nextAt, epoch, last?.at ?? null, last?.run.id ?? null]);
  }

  async #unfinished(tx: Queryable, job: string | null): Promise<boolean> {
    return job !== null && (await tx.query(UNFINISHED, [uuidOf(job as JobId)])).length > 0;
  }
}

function toSchedule(row: Row): Schedule {
  return {
    ...(JSON.parse(row.definition) as ScheduleDefinition),
    paused: row.paused,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    nextAt: row.next_at,
    lastFiredAt: row.last_fired_at,
    lastJob: row.last_job,
    leaderEpoch: row.leader_epoch,
  };
}
