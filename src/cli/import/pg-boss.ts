/** Reads the queues, jobs and schedules of pg-boss from its tables, in transactions that can write nothing. */

import type { Client } from "../../platform/drivers/postgres/package.ts";
import { reasonOf } from "../../core/errors.ts";
import { count } from "../../core/format-figures.ts";
import { CliFailure, EXIT } from "../failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import {
  chosenQueues,
  clampedAttempts,
  clampedPriority,
  type FoundJob,
  type FoundSchedule,
  type ImportSource,
  type SourceQueue,
  unreadable,
} from "./import-source.ts";

export interface PgBossOptions {
  readonly url: string;
  readonly schema: string;
  /** Empty for all. */
  readonly queues: readonly string[];
}

/** Of the tables, in `version`. Releases of pg-boss change them often, and each is a new number. */
const TABLES_VERSION = 46;
const RELEASE = "12.38";
const CONNECT_MS = 5_000;
const PAGE = 500;
/** Queues of pg-boss's own have names that begin with it. */
const INTERNAL = "__pgboss__";

export async function openPgBoss(terminal: Terminal, options: PgBossOptions): Promise<ImportSource> {
  const { url, schema } = options;
  if (!/^postgres(?:ql)?:\/\//.test(url)) {
    throw new CliFailure(EXIT.usage, "the URL must be as postgres://user:password@host/database");
  }
  // As pg-boss has it: its SQL has the name without quotes.
  if (!/^[A-Za-z_]\w*$/.test(schema))
    throw new CliFailure(EXIT.usage, `--schema "${schema}" is no plain name`);
  let client: Client | null = null;
  try {
    // Loaded here: the driver takes longer to load than all the rest.
    const { Client: Connection } = await import("../../platform/drivers/postgres/package.ts");
    client = new Connection({
      connectionString: url,
      connectionTimeoutMillis: CONNECT_MS,
      application_name: "baton import",
    });
    client.on("error", () => {});
    await connect(client);
    await checkVersion(client, schema);
    return await PgBossSource.read(client, options, terminal.clock.now());
  } catch (error) {
    void client?.end().catch(() => {});
    throw unreadable("pg-boss cannot be read", error);
  }
}

async function connect(client: Client): Promise<void> {
  try {
    await client.connect();
  } catch (error) {
    const hint = "does the database run, can this machine reach it, and are user and password right?";
    throw new CliFailure(EXIT.unreachable, `no connection to the database: ${reasonOf(error)}`, hint);
  }
}

async function checkVersion(client: Client, schema: string): Promise<void> {
  const { rows } = await client.query<{ schema: string; here: boolean }>(INSTALLATIONS, [schema]);
  if (!rows.some(({ here }) => here)) {
    const others = rows.map((row) => row.schema).join(", ");
    const hint = others === "" ? "is it another database?" : `pg-boss is in the schema ${others}: --schema`;
    throw new CliFailure(EXIT.notFound, `there is no pg-boss in the schema "${schema}"`, hint);
  }
  const [found] = (await client.query<{ version: number }>(`SELECT version FROM ${schema}.version`)).rows;
  const version = found?.version ?? 0;
  if (version === TABLES_VERSION) return;
  const hint =
    version < TABLES_VERSION
      ? `upgrade pg-boss to ${RELEASE} first: it brings its tables up to date when it starts`
      : "a later version of Baton may understand it";
  const message = `the tables of pg-boss in the schema "${schema}" have version ${version}; version ${TABLES_VERSION} (pg-boss ${RELEASE}) is understood`;
  throw new CliFailure(EXIT.refused, message, hint);
}

class PgBossSource implements ImportSource {
  readonly kind = "pg-boss";
  readonly address: string;
  readonly queues: readonly SourceQueue[];
  readonly #client: Client;
  readonly #schema: string;
  readonly #now: number;

  private constructor(client: Client, schema: string, now: number, queues: readonly SourceQueue[]) {
    this.address = `${client.host}:${client.port}/${client.database ?? ""}`;
    this.queues = queues;
    this.#client = client;
    this.#schema = schema;
    this.#now = now;
  }

  static async read(
    client: Client,
    { schema, queues: wanted }: PgBossOptions,
    now: number,
  ): Promise<PgBossSource> {
    const { rows } = await client.query<QueueRow>(inSchema(QUEUES, schema), [`${INTERNAL}%`]);
    const names = chosenQueues(
      wanted,
      rows.map(({ name }) => name),
      `the schema "${schema}"`,
      "is it another --schema, or another database?",
    );
    const [running] = (await client.query<{ n: number }>(inSchema(INSTANCES, schema))).rows;
    const n = running?.n ?? 0;
    const mayRun =
      n === 0
        ? null
        : `${count(n)} running ${n === 1 ? "program has" : "programs have"} pg-boss open and may also run what is imported; stop their workers`;
    const queues = rows
      .filter(({ name }) => names.includes(name))
      .map((row) => ({ ...row, flows: 0, mayRun }));
    return new PgBossSource(client, schema, now, queues);
  }

  async *jobs(queue: string): AsyncIterable<readonly FoundJob[]> {
    const client = this.#client;
    await client.query(BEGIN);
    try {
      await client.query(`${DECLARE} ${inSchema(JOBS, this.#schema)}`, [queue]);
      for (;;) {
        const { rows } = await client.query<JobRow>(`FETCH ${PAGE} FROM found`);
        if (rows.length === 0) break;
        yield rows.map((row) => foundJob(row, this.#now));
      }
    } finally {
      await client.query("ROLLBACK");
    }
  }

  async schedules(queue: string): Promise<readonly FoundSchedule[]> {
    const { rows } = await this.#client.query<ScheduleRow>(inSchema(SCHEDULES, this.#schema), [queue]);
    return rows.map(foundSchedule);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.end().catch(() => {});
  }
}

type QueueRow = Pick<SourceQueue, "name" | "waiting" | "active">;

interface JobRow {
  readonly id: string;
  readonly name: string;
  readonly data: unknown;
  readonly priority: number;
  readonly attempts: number;
  readonly createdAt: number;
  readonly startAt: number;
  readonly inFlow: boolean;
}

interface ScheduleRow {
  readonly name: string;
  readonly key: string;
  readonly kind: string;
  readonly cron: string;
  readonly timezone: string | null;
  readonly data: unknown;
  readonly options: {
    readonly priority?: number;
    readonly retryLimit?: number;
    readonly missed?: string;
  } | null;
  readonly retryLimit: number;
}

function foundJob(
  { id, name, data, priority, attempts, createdAt, startAt, inFlow }: JobRow,
  now: number,
): FoundJob {
  return {
    id,
    name,
    createdAt,
    payload: data,
    priority: clampedPriority(priority),
    attempts: clampedAttempts(attempts),
    runAt: startAt > now ? startAt : null,
    inFlow,
    nextOf: null,
  };
}

function foundSchedule(row: ScheduleRow): FoundSchedule {
  const { name, key, kind, cron, timezone, data, options } = row;
  const { priority = 0, retryLimit = row.retryLimit, missed } = options ?? {};
  return {
    name: key === "" ? name : `${name}/${key}`,
    job: name,
    body: {
      payload: data,
      cron,
      zone: timezone ?? "UTC",
      priority: clampedPriority(priority),
      max_attempts: clampedAttempts(retryLimit + 1),
      missed: missed === "once" ? "run_once" : "skip",
    },
    refused: kind === "cron" ? null : `it is written as an ${kind}, and schedules here have cron expressions`,
    note: null,
  };
}

function inSchema(text: string, schema: string): string {
  return text.replaceAll("pgboss.", `${schema}.`);
}

const INSTALLATIONS = `
  SELECT n.nspname AS schema, n.nspname = lower($1) AS here
    FROM pg_class v JOIN pg_namespace n ON n.oid = v.relnamespace
   WHERE v.relname = 'version' AND v.relkind = 'r'
     AND EXISTS (SELECT FROM pg_class q WHERE q.relnamespace = n.oid AND q.relname = 'job')
     AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = v.oid AND a.attname = 'cron_on')
   ORDER BY 1`;

const QUEUES = `
  SELECT q.name, count(*) FILTER (WHERE j.state < 'active')::int AS waiting,
         count(*) FILTER (WHERE j.state = 'active')::int AS active
    FROM pgboss.queue q LEFT JOIN pgboss.job j ON j.name = q.name AND j.state <= 'active'
   WHERE q.name NOT LIKE $1
   GROUP BY q.name ORDER BY q.name`;

/** As pg-boss counts them: quiet for three beats is gone. */
const INSTANCES = `
  SELECT count(*)::int AS n FROM pgboss.instance
   WHERE stopped_on IS NULL AND heartbeat_on > now() - heartbeat_seconds * 3 * interval '1 second'`;

const BEGIN = `
  BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
  SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL statement_timeout = 0`;
const DECLARE = "DECLARE found NO SCROLL CURSOR FOR";

/** A job that has been started before has used up one attempt more than its retries so far. */
const JOBS = `
  SELECT id::text, name, data, priority,
         retry_limit + 1 - retry_count - (started_on IS NOT NULL)::int AS attempts,
         floor(extract(epoch FROM created_on) * 1000)::float8 AS "createdAt",
         floor(extract(epoch FROM start_after) * 1000)::float8 AS "startAt",
         blocked OR blocking AS "inFlow"
    FROM pgboss.job WHERE name = $1 AND state < 'active'
   ORDER BY priority DESC, created_on, id`;

const SCHEDULES = `
  SELECT s.name, s.key, s.kind, s.cron, s.timezone, s.data, s.options, q.retry_limit AS "retryLimit"
    FROM pgboss.schedule s JOIN pgboss.queue q ON q.name = s.name
   WHERE s.name = $1 ORDER BY s.key`;
