/**
 * One PostgreSQL database, through our own connection pool.
 *
 * - Every use of a connection has a deadline, here and on the server; when it passes, the connection is destroyed. A half-open one
 *   costs one deadline, not a hang.
 * - A transaction that the server rolled back (serialization, deadlock) is run again, a few times. After a lost connection only reads
 *   are repeated, because a write may have been committed. Any other failure is STORE_UNAVAILABLE.
 * - Statements are prepared by name, with plans that do not depend on statistics or parameters.
 * - Connections are pipelined, but never shared: statements sent together by one caller cost one round trip.
 *
 * All of this also works behind a transaction pooler, more slowly: see connection-mode.ts.
 */

import type { ClientBase, CustomTypesConfig, PoolClient, QueryConfig } from "pg";
import { BatonError, reasonOf } from "../../../core/errors.ts";
import type { Clock } from "../../clock.ts";
import { Lifecycle } from "../../service.ts";
import { isAborted, isLost, translated, unavailable } from "./errors.ts";
import { cut, directly, inTime, socketOf, type ConnectionMode, throughPooler } from "./connection-mode.ts";
import { Pool, types as pgTypes } from "./package.ts";
import type { PoolerCheck } from "./pooler-check.ts";

export interface Statement {
  /** Unique in the process: it is prepared under this name once on each connection. */
  readonly name: string;
  /** Tables are written `baton.job`; the schema in use is put in its place. */
  readonly text: string;
  /** Safe to send again when its connection was lost. */
  readonly readOnly: boolean;
  /** Rows as arrays: for statements that answer with hundreds. */
  readonly arrays: boolean;
}

export function write(name: string, text: string): Statement {
  return { name, text, readOnly: false, arrays: false };
}

export function read(name: string, text: string): Statement {
  return { name, text, readOnly: true, arrays: false };
}

export function queryOf(
  mode: ConnectionMode,
  statement: Statement,
  text: string,
  values: readonly unknown[],
): QueryConfig {
  const config: QueryConfig = { name: mode.name(statement), text, values: values as unknown[] };
  return statement.arrays ? Object.assign(config, { rowMode: "array" }) : config;
}

export interface Queryable {
  query<Row>(statement: Statement, values?: readonly unknown[]): Promise<Row[]>;
}

/** Of a pool, and of a session. */
export interface PostgresAddress {
  /** `postgres://user@host:port/database` */
  readonly url: string;
  readonly clock: Clock;
  readonly schema?: string;
  readonly connectMs?: number;
  readonly statementMs?: number;
  /** Shown in `pg_stat_activity`; a successor knows the connections of a paused leader by it. */
  readonly applicationName?: string;
  /** Looked at when it starts. Without it, the server is taken to be at the other end of the URL. */
  readonly pooler?: PoolerCheck;
}

export interface PostgresOptions extends PostgresAddress {
  readonly connections?: number;
}

/** Enough for two loops of claims, their completions, submits and the reads of people; more only adds to contention. */
const CONNECTIONS = 10;
const CONNECT_MS = 5_000;
/** Longer than any statement of ours needs on a busy server, shorter than a lease. */
const STATEMENT_MS = 15_000;
/** What statements under way have at a stop. One that a silent server does not answer would take all of its own deadline. */
const STOP_MS = 1_000;
const ABORTED_TRIES = 4;

export function plainSchema(schema = "baton"): string {
  if (/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) return schema;
  const message = `postgres.schema "${schema}" is not a plain name; use lower-case letters, digits and _`;
  throw new BatonError("BAD_CONFIG", message, { field: "postgres.schema" });
}

/** `baton.job` in a statement is the table in whichever schema is in use. */
export function inSchema(text: string, schema: string): string {
  return schema === "baton" ? text : text.replaceAll("baton.", `${schema}.`);
}

const INT8 = 20;
/** Epochs, times in ms and counts are all below 2^53. */
const types: CustomTypesConfig = {
  getTypeParser: (oid: number, format?: "text" | "binary") =>
    oid === INT8 && format !== "binary" ? Number : pgTypes.getTypeParser(oid, format),
};

export function clientOptions(
  { url, applicationName = "baton" }: PostgresAddress,
  { pipelined }: ConnectionMode,
) {
  return {
    connectionString: url,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: applicationName,
    pipeline: pipelined,
    types,
  };
}

export class Postgres extends Lifecycle implements Queryable {
  readonly schema: string;
  readonly #options: PostgresOptions;
  readonly #statementMs: number;
  readonly #texts = new Map<Statement, string>();
  #manner: ConnectionMode;
  #pool: Pool | null = null;
  readonly #open = new Map<ClientBase, Promise<void>>();

  constructor(options: PostgresOptions) {
    super();
    this.#options = options;
    this.#statementMs = options.statementMs ?? STATEMENT_MS;
    this.#manner = directly(this.#statementMs);
    this.schema = plainSchema(options.schema);
  }

  protected async onStart(): Promise<void> {
    const { clock, connections = CONNECTIONS, connectMs = CONNECT_MS, pooler } = this.#options;
    if (await pooler?.pooled()) this.#manner = throughPooler(this.#statementMs);
    const { setUp } = this.#manner;
    const pool = new Pool({
      ...clientOptions(this.#options, this.#manner),
      max: connections,
      connectionTimeoutMillis: connectMs,
      // The pool waits for what it answers with, and for ever: its own deadline ends with the greeting.
      ...(setUp !== null && {
        onConnect: (client: ClientBase) =>
          inTime(clock, connectMs, [client], () => client.query(setUp)) as unknown as void,
      }),
    });
    // An idle connection that breaks is replaced by the pool; the next caller gets a new one.
    pool.on("error", () => {});
    pool.on("connect", (client) => {
      client.on("error", () => {});
      const socket = socketOf(client);
      const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
      const forgotten = closed.then(() => void this.#open.delete(client));
      this.#open.set(client, forgotten);
    });
    this.#pool = pool;
    try {
      await this.query(read("ping", "SELECT 1"));
    } catch (error) {
      this.#pool = null;
      await pool.end();
      throw error;
    }
  }

  protected async onStop(): Promise<void> {
    const pool = this.#pool;
    this.#pool = null;
    if (!pool) return;
    const { clock } = this.#options;
    const over = new AbortController();
    // The pool's own promise resolves when it has asked its connections to end: their sockets are still open then.
    const closed = Promise.all(this.#open.values());
    void pool.end();
    await Promise.race([closed, clock.sleep(STOP_MS, over.signal)]);
    over.abort();
    for (const client of this.#open.keys()) cut(client);
    await closed;
  }

  query<Row>(
    statement: Statement,
    values: readonly unknown[] = [],
    deadlineMs = this.#statementMs,
  ): Promise<Row[]> {
    // A server that ended one idle connection has ended them all: the pool may hand out each of them before it opens a new one.
    const tries = statement.readOnly ? (this.#options.connections ?? CONNECTIONS) + 1 : 1;
    return this.#attempt(tries, (client) => this.#send<Row>(client, statement, values), deadlineMs);
  }

  /** Two statements in one round trip, each in a transaction of its own. The second runs whatever the first did; null: that failed. */
  pair<A, B>(
    first: readonly [Statement, readonly unknown[]],
    second: readonly [Statement, readonly unknown[]],
  ): Promise<[A[] | null, B[]]> {
    return this.#attempt(1, async (client) => {
      const [one, two] = await Promise.allSettled([
        this.#send<A>(client, ...first),
        this.#send<B>(client, ...second),
      ]);
      if (two.status === "rejected") throw two.reason;
      return [one.status === "fulfilled" ? one.value : null, two.value];
    });
  }

  /** All or nothing. `work` may run more than once, and must not use the pool: it would wait for itself. */
  transaction<T>(work: (tx: Queryable) => Promise<T>, deadlineMs = this.#statementMs): Promise<T> {
    return this.#attempt(
      1,
      async (client) => {
        const say = (text: string) => this.#manner.inTurn(client, () => client.query(text));
        const begun = say(this.#manner.begin);
        begun.catch(() => {}); // what comes behind it fails as well, and is awaited
        const tx: Queryable = { query: (statement, values = []) => this.#send(client, statement, values) };
        try {
          const result = await work(tx);
          await begun;
          await say("COMMIT");
          return result;
        } catch (error) {
          if (!isLost(error)) await say("ROLLBACK");
          throw error;
        }
      },
      deadlineMs,
    );
  }

  async #attempt<T>(
    lostTries: number,
    work: (client: PoolClient) => Promise<T>,
    deadlineMs = this.#statementMs,
  ): Promise<T> {
    const giveUpAt = this.#options.clock.monotonic() + deadlineMs;
    for (let tries = 1; ; tries++) {
      try {
        return await this.#use(work, deadlineMs);
      } catch (error) {
        if (error instanceof BatonError) throw error;
        // No caller waits twice for a server that is silent.
        const inTime = this.#options.clock.monotonic() < giveUpAt;
        if (isAborted(error) && tries < ABORTED_TRIES && inTime) continue;
        if (isLost(error) && tries < lostTries && inTime) continue;
        throw translated(error);
      }
    }
  }

  async #use<T>(work: (client: PoolClient) => Promise<T>, deadlineMs: number): Promise<T> {
    const client = await this.#connect();
    let lost = false;
    try {
      return await inTime(this.#options.clock, deadlineMs, [client], () => work(client));
    } catch (error) {
      lost = isLost(error);
      throw error;
    } finally {
      client.release(lost || socketOf(client).destroyed);
    }
  }

  async #connect(): Promise<PoolClient> {
    if (!this.#pool) throw new BatonError("STOPPED", "the store is stopped");
    try {
      return await this.#pool.connect();
    } catch (error) {
      if (!this.running || isLost(error)) throw error;
      // The URL has worked: whatever keeps us out now, also a changed password, may be taken back.
      throw unavailable(reasonOf(error), error);
    }
  }

  async #send<Row>(client: PoolClient, statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    const config = queryOf(this.#manner, statement, this.#text(statement), values);
    const result = await this.#manner.inTurn(client, () => client.query(config));
    return result.rows as Row[];
  }

  #text(statement: Statement): string {
    let text = this.#texts.get(statement);
    if (text === undefined) this.#texts.set(statement, (text = inSchema(statement.text, this.schema)));
    return text;
  }
}
