/**
 * A dedicated connection: for everything that is bound to a session (advisory locks, LISTEN), and for calls that must
 * never wait for the pool (leases, heartbeats).
 *
 * - It connects by itself, and reconnects after every loss, with growing and jittered pauses. `onOpen` runs first on
 *   each new
 *   connection; what it sets up (a lock, a LISTEN) is in place before any other statement.
 * - `onLost` is called at the moment the connection breaks, also while no answer is pending.
 * - Every statement has a deadline. When it passes, the connection is destroyed: it may be half open, and a late
 *   statement must
 *   not take effect.
 *
 * Statements are sent in order, without waiting for earlier answers. Behind a pooler they do wait, each transaction has
 * another session, and locks and LISTEN must not be used.
 */

import { Client, type Connection, type QueryConfig } from "pg";
import { BatonError } from "../../../core/errors.ts";
import type { Clock } from "../../clock.ts";
import type { Random } from "../../random.ts";
import { Lifecycle } from "../../service.ts";
import { inSchema, plainSchema, type Queryable, type Statement, types, write } from "./postgres.ts";
import { isLost, translated } from "./errors.ts";
import { directly, type ConnectionMode, throughPooler } from "./connection-mode.ts";
import type { PoolerCheck } from "./pooler-check.ts";
import { reconnect } from "../reconnect.ts";

export interface PostgresSessionOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly schema?: string;
  readonly applicationName?: string;
  readonly connectMs?: number;
  readonly statementMs?: number;
  /** Looked at when it starts. Without it, the server is taken to be at the other end of the URL. */
  readonly pooler?: PoolerCheck;
  /** Until it resolves, the session does not count as open; when it rejects, the connection is given up. */
  readonly onOpen?: (session: Queryable) => Promise<void>;
  /** Called each time the session counts as open. */
  readonly onReady?: () => void;
  readonly onLost?: (reason: unknown) => void;
  readonly onNotification?: (channel: string, payload: string) => void;
}

const CONNECT_MS = 5_000;
const STATEMENT_MS = 5_000;
/** A polite end is one round trip. Whoever needs longer is cut off: nobody waits for the answer. */
const FAREWELL_MS = 250;

const COMMIT = write("session-commit", "COMMIT");
/** A backend that waits for a lock looks only then whether anybody still waits for it. Not every platform can. */
const LOOK_AFTER_US = "SET client_connection_check_interval = 1000";

export class PostgresSession extends Lifecycle {
  readonly schema: string;
  readonly #o: PostgresSessionOptions;
  readonly #statementMs: number;
  #manner: ConnectionMode;
  /** Set when the connection is open and set up. */
  #client: Client | null = null;
  /** The connection in use or in the making. */
  #current: Client | null = null;
  /** Statements whose answer has not come. */
  #unanswered = 0;
  #stopping = new AbortController();
  #opening: Promise<void> = Promise.resolve();

  constructor(options: PostgresSessionOptions) {
    super();
    this.#o = options;
    this.#statementMs = options.statementMs ?? STATEMENT_MS;
    this.#manner = directly(this.#statementMs);
    this.schema = plainSchema(options.schema);
  }

  get open(): boolean {
    return this.#client !== null;
  }

  /** Waits for the first connection, and rejects with the reason when there is none. */
  protected async onStart(): Promise<void> {
    this.#stopping = new AbortController();
    if (await this.#o.pooler?.pooled()) this.#manner = throughPooler(this.#statementMs);
    await this.#connect();
  }

  protected async onStop(): Promise<void> {
    this.#stopping.abort();
    const client = this.#current;
    const open = this.#client === client;
    this.#current = null;
    this.#client = null;
    if (client) await this.#farewell(client, open);
    await this.#opening;
  }

  /** `deadlineMs: null` for a statement that may wait for as long as it takes, such as one for a lock. */
  query<Row>(
    statement: Statement,
    values: readonly unknown[] = [],
    options: { readonly deadlineMs?: number | null } = {},
  ): Promise<Row[]> {
    const client = this.#client;
    if (!client) {
      const error = new BatonError("STORE_UNAVAILABLE", "the database is not available: not connected");
      return Promise.reject(error);
    }
    return this.#send(client, statement, values, options.deadlineMs);
  }

  /**
   * Statements that are known beforehand, as one transaction, in one round trip if they can be; the rows of each. Nobody else's come in
   * between, but whatever is sent meanwhile waits behind them.
   */
  async transaction(
    steps: readonly (readonly [statement: Statement, values: readonly unknown[]])[],
  ): Promise<unknown[][]> {
    const begin = write("session-begin", this.#manner.begin);
    const sent = [[begin, []] as const, ...steps, [COMMIT, []] as const].map(([statement, values]) =>
      this.query<unknown>(statement, values),
    );
    const answers = await Promise.allSettled(sent);
    // The first to fail tells why; behind it the server says no more than that the transaction is aborted.
    const rows = answers.map((answer) => {
      if (answer.status === "rejected") throw answer.reason;
      return answer.value;
    });
    return rows.slice(1, -1);
  }

  /** Gives the connection up now, with everything that the server keeps for it. A new one is opened. */
  reset(reason: string): void {
    if (!this.#current) return;
    const error = new BatonError("STORE_UNAVAILABLE", `the connection was given up: ${reason}`);
    this.#giveUp(this.#current, error);
  }

  async #connect(): Promise<void> {
    const { url, connectMs = CONNECT_MS, applicationName = "baton", onOpen, onNotification } = this.#o;
    const client = new Client({
      connectionString: url,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      application_name: applicationName,
      pipeline: this.#manner.pipelined,
      types,
    });
    this.#current = client;
    client.on("error", (error) => this.#giveUp(client, error));
    client.on("end", () => this.#ended(client, new Error("connection closed")));
    if (onNotification) {
      client.on("notification", ({ channel, payload = "" }) => onNotification(channel, payload));
    }
    try {
      await this.#within(client, connectMs, greet(client, this.#manner.setUp));
      await onOpen?.({ query: (statement, values = []) => this.#send(client, statement, values) });
      if (this.#current !== client) throw new BatonError("STORE_UNAVAILABLE", "the connection broke at once");
    } catch (error) {
      if (this.#current === client) this.#current = null;
      destroy(client, error);
      throw error instanceof BatonError ? error : translated(error);
    }
    this.#client = client;
    this.#o.onReady?.();
  }

  /** Lost from this moment on: nobody is told "no answer" and finds the session open. */
  #giveUp(client: Client, reason: unknown): void {
    destroy(client, reason);
    this.#ended(client, reason);
  }

  #ended(client: Client, reason: unknown): void {
    if (this.#current !== client) return;
    this.#current = null;
    if (this.#client !== client) return; // `#connect` tells
    this.#client = null;
    this.#o.onLost?.(reason);
    const { signal } = this.#stopping;
    if (!signal.aborted) this.#opening = reconnect(() => this.#connect(), this.#o, signal);
  }

  async #send<Row>(
    client: Client,
    statement: Statement,
    values: readonly unknown[],
    deadlineMs: number | null = this.#statementMs,
  ): Promise<Row[]> {
    const config = {
      name: this.#manner.name(statement),
      text: inSchema(statement.text, this.schema),
      values: values as unknown[],
      ...(statement.arrays ? { rowMode: "array" as const } : {}),
    };
    this.#unanswered += 1;
    try {
      const sent = this.#manner.inTurn(client, () => client.query(config as QueryConfig));
      const result = await (deadlineMs === null ? sent : this.#within(client, deadlineMs, sent));
      return result.rows as Row[];
    } catch (error) {
      // The server says so to the statement first, and closes a moment later.
      if (isLost(error)) this.#giveUp(client, error);
      throw error instanceof BatonError ? error : translated(error);
    } finally {
      this.#unanswered -= 1;
    }
  }

  async #within<T>(client: Client, deadlineMs: number, work: Promise<T>): Promise<T> {
    const late = new BatonError(
      "STORE_UNAVAILABLE",
      `the database is not available: no answer within ${deadlineMs} ms`,
    );
    let over = false;
    let answered = false;
    const giveUp = (): void => {
      if (answered) return;
      over = true;
      this.#giveUp(client, late);
    };
    // When this thread was held up, the answer lies there unread: it is read before the end of this turn of the loop.
    const callOff = this.#o.clock.after(deadlineMs, () => setImmediate(giveUp));
    try {
      return await work;
    } catch (error) {
      throw over ? late : error;
    } finally {
      answered = true;
      callOff();
    }
  }

  /** Polite only when there is nothing to wait for: a statement that waits for a lock, or a server that never answered. */
  async #farewell(client: Client, open: boolean): Promise<void> {
    if (open && this.#unanswered === 0) {
      const over = new AbortController();
      const ended = client.end().catch(() => {});
      await Promise.race([ended, this.#o.clock.sleep(FAREWELL_MS, over.signal)]);
      over.abort();
    }
    destroy(client, new BatonError("STOPPED", "the connection to the database is closed"));
  }
}

async function greet(client: Client, setUp: string | null): Promise<void> {
  await client.connect();
  if (setUp === null) return;
  const looking = client.query(LOOK_AFTER_US).catch(() => {});
  // The server must not call off what we wait for on purpose; our own deadlines cover the rest.
  await client.query(`${setUp}; SET statement_timeout = 0`);
  await looking;
}

function destroy(client: Client, reason: unknown): void {
  const { stream } = (client as unknown as { connection: Connection }).connection;
  stream.destroy(reason instanceof Error ? reason : undefined);
}
