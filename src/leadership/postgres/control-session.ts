/**
 * A node's own connection for coordination, separate from the pool: heartbeats, reads of leases, notifications. While
 * it is open the node holds the advisory lock of its incarnation, so that others see its end at once.
 *
 * Behind a transaction pooler neither locks nor LISTEN work. That is checked at the start, and then neither is used.
 */

import { BatonError } from "../../core/errors.ts";
import type { NodeIdentity } from "../../core/node.ts";
import type { Clock } from "../../platform/clock.ts";
import { read, write, type Queryable, type Statement } from "../../platform/drivers/postgres/postgres.ts";
import {
  applicationName,
  PostgresSession,
  type PostgresSessionOptions,
} from "../../platform/drivers/postgres/session.ts";
import type { PoolerCheck } from "../../platform/drivers/postgres/pooler-check.ts";
import type { Platform } from "../../platform/platform.ts";
import { Lifecycle, startWith } from "../../platform/service.ts";
import { HELD_LOCKS, incarnationLock } from "./advisory-lock.ts";

export interface ControlOptions extends Pick<Platform, "identity" | "clock" | "random"> {
  readonly url: string;
  readonly schema: string;
  readonly statementMs: number;
  readonly pooler: PoolerCheck;
  /** Takes the place of the database's clock: for tests, which move it by hand. */
  readonly time: Clock | null;
  readonly onReady: () => void;
  /** A notification within our cluster, such as `leader/scheduler`. */
  readonly onNotification: (subject: string) => void;
}

/** The instant of a statement: the database's, unless a test gives one as $1. */
export const NOW = "coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)";

/** Grants and releases. The name is older than the notification of grants. */
export const LEADER_CHANNEL = "baton_leader_released";
export const REQUEST_CHANNEL = "baton_request";

const LISTEN = [LEADER_CHANNEL, REQUEST_CHANNEL].map((channel) => write("", `LISTEN ${channel}`));
const PID = read("control-pid", "SELECT pg_backend_pid() AS pid");
const LOCK_INCARNATION = write(
  "incarnation-lock",
  `SELECT pg_try_advisory_lock(${incarnationLock("$1")}) AS held`,
);
/** A session of ours that we have lost and the server has not. */
const END_OLD_SESSION = write(
  "incarnation-evict",
  `SELECT count(pg_terminate_backend(pid)) FROM (${HELD_LOCKS}) held
   WHERE key = ${incarnationLock("$1")} AND pid <> pg_backend_pid()`,
);
const LOCK_TRIES = 5;
const LOCK_PAUSE_MS = 20;

export class ControlSession extends Lifecycle {
  readonly schema: string;
  pid = 0;
  readonly #o: ControlOptions;
  readonly #session: PostgresSession;
  /** Unknown until the first start has checked it. */
  #pooled: boolean | null = null;
  #locked = false;

  constructor(options: ControlOptions) {
    super();
    this.#o = options;
    this.schema = options.schema;
    this.#session = new PostgresSession({
      ...this.sessionOptions(),
      statementMs: options.statementMs,
      onOpen: async (session) => {
        if (this.#pooled === false) await this.#setUp(session);
      },
      onReady: () => {
        if (this.#pooled !== null) options.onReady();
      },
      onLost: () => (this.#locked = false),
      onNotification: (_, payload) => {
        const own = this.payload("");
        if (payload.startsWith(own)) options.onNotification(payload.slice(own.length));
      },
    });
  }

  sessionOptions(): PostgresSessionOptions {
    const { url, schema, identity, clock, random, pooler } = this.#o;
    return { url, schema, clock, random, pooler, applicationName: applicationName(identity) };
  }

  get pooled(): boolean {
    return this.#pooled ?? false;
  }

  get locked(): boolean {
    return this.#locked;
  }

  get listening(): boolean {
    return this.#pooled === false && this.#session.open;
  }

  /** Parameter $1 of every statement that needs the time: null, and the database looks at its own clock. */
  now(): number | null {
    return this.#o.time?.now() ?? null;
  }

  /** Of a notification: the schema first, for the clusters of one database share their channels. */
  payload(subject: string): string {
    return `${this.schema}/${subject}`;
  }

  query<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    return this.#session.query(statement, values);
  }

  /** Tries again to get the lock of our incarnation, if it is not ours: an old session of ours may have had it. */
  async ensureLocked(): Promise<void> {
    if (this.pooled || this.#locked || !this.#session.open) return;
    this.#locked = await lockIncarnation(this.#session, this.#o.identity);
  }

  protected async onStart(): Promise<void> {
    this.#pooled = null;
    await startWith(this.#session, async () => {
      await checkServer(this.#session);
      this.#pooled = await this.#o.pooler.pooled();
      if (!this.#pooled) await this.#setUp(this.#session);
    });
  }

  protected async onStop(): Promise<void> {
    await this.#session.stop();
    this.#locked = false;
  }

  async #setUp(session: Queryable): Promise<void> {
    for (const listen of LISTEN) await session.query(listen);
    const [self] = await session.query<{ pid: number }>(PID);
    this.pid = self!.pid;
    const { clock, identity } = this.#o;
    for (let tries = 0; tries < LOCK_TRIES; tries++) {
      this.#locked = await lockIncarnation(session, identity);
      if (this.#locked) return;
      // Refused where we may not end sessions: then others see only our heartbeats.
      await session.query(END_OLD_SESSION, [identity.incarnation]).catch(() => {});
      await clock.sleep(LOCK_PAUSE_MS);
    }
  }
}

async function lockIncarnation(session: Queryable, { incarnation }: NodeIdentity): Promise<boolean> {
  const [row] = await session.query<{ held: boolean }>(LOCK_INCARNATION, [incarnation]);
  return row!.held;
}

const STATE = read(
  "server-state",
  `SELECT pg_is_in_recovery() AS in_recovery, to_regclass('baton.node') IS NOT NULL AS has_tables,
     inet_server_addr()::text AS address`,
);

async function checkServer(session: PostgresSession): Promise<void> {
  const [state] = await session.query<{ in_recovery: boolean; has_tables: boolean; address: string | null }>(
    STATE,
  );
  if (state!.in_recovery) {
    throw new BatonError(
      "BAD_CONFIG",
      `the database server${state!.address ? ` at ${state!.address}` : ""} is in recovery: a standby takes no writes, so no node can lead or work on it; give "store" the URL of the primary`,
      { field: "store" },
    );
  }
  if (!state!.has_tables) {
    throw new BatonError(
      "BAD_CONFIG",
      `schema ${session.schema} has no tables of Baton in this database; the store makes them, start it first`,
      { field: "postgres.schema" },
    );
  }
}
