/**
 * A dedicated connection: for what is bound to a session (advisory locks, LISTEN), and for calls that must never wait for the pool (leases,
 * heartbeats).
 *
 * - It connects again after every loss. What `onOpen` sets up (a lock, a LISTEN) is in place before any other statement.
 * - Every statement has a deadline. When it passes, the connection is destroyed: it may be half open, and a late statement must not
 *   take effect.
 *
 * Statements are sent in order, without waiting for earlier answers. Behind a pooler they do wait, each transaction has another session, and
 * locks and LISTEN must not be used.
 */

import { BatonError } from "../../../core/errors.ts";
import type { NodeIdentity } from "../../../core/node.ts";
import { within } from "../../loop.ts";
import type { Platform } from "../../platform.ts";
import { ReconnectingSession, type SessionEvents } from "../reconnecting-session.ts";
import {
  clientOptions,
  inSchema,
  plainSchema,
  type PostgresAddress,
  queryOf,
  type Queryable,
  type Statement,
  write,
} from "./postgres.ts";
import { isLost, translated, unavailable } from "./errors.ts";
import { Client } from "./package.ts";
import { directly, socketOf, type ConnectionMode, throughPooler } from "./connection-mode.ts";

export interface PostgresSessionOptions extends PostgresAddress, Pick<Platform, "random">, SessionEvents {
  /** Until it resolves, the session does not count as open; when it rejects, the connection is given up. */
  readonly onOpen?: (session: Queryable) => Promise<void>;
  readonly onNotification?: (channel: string, payload: string) => void;
}

const CONNECT_MS = 5_000;
const STATEMENT_MS = 5_000;
/** A polite end is one round trip. A server that needs longer is cut off: no caller waits for the answer. */
const FAREWELL_MS = 250;

const COMMIT = write("session-commit", "COMMIT");
/** A backend that waits for a lock looks only then whether anybody still waits for it. Not every platform can. */
const LOOK_AFTER_US = "SET client_connection_check_interval = 1000";

export class PostgresSession extends ReconnectingSession<Client> {
  readonly schema: string;
  readonly #o: PostgresSessionOptions;
  readonly #statementMs: number;
  #manner: ConnectionMode;
  #unanswered = 0;

  constructor(options: PostgresSessionOptions) {
    super(options);
    this.#o = options;
    this.#statementMs = options.statementMs ?? STATEMENT_MS;
    this.#manner = directly(this.#statementMs);
    this.schema = plainSchema(options.schema);
  }

  protected override async onStart(): Promise<void> {
    if (await this.#o.pooler?.pooled()) this.#manner = throughPooler(this.#statementMs);
    await super.onStart();
  }

  /** `deadlineMs: null` for a statement that may wait for as long as it takes, such as one for a lock. */
  query<Row>(
    statement: Statement,
    values: readonly unknown[] = [],
    options: { readonly deadlineMs?: number | null } = {},
  ): Promise<Row[]> {
    return this.use((client) => this.#send<Row>(client, statement, values, options.deadlineMs));
  }

  /** One transaction of known statements, in one round trip if possible; the rows of each. What is sent meanwhile waits behind them. */
  async transaction(
    steps: readonly (readonly [statement: Statement, values: readonly unknown[]])[],
  ): Promise<unknown[][]> {
    const begin = write("session-begin", this.#manner.begin);
    const sent = [[begin, []] as const, ...steps, [COMMIT, []] as const].map(([statement, values]) =>
      this.query<unknown>(statement, values),
    );
    const answers = await Promise.allSettled(sent);
    // The first failure has the reason; behind it the server says no more than that the transaction is aborted.
    const rows = answers.map((answer) => {
      if (answer.status === "rejected") throw answer.reason;
      return answer.value;
    });
    return rows.slice(1, -1);
  }

  /** Gives the connection up now, with everything that the server keeps for it. A new one is opened. */
  reset(reason: string): void {
    const error = new BatonError("STORE_UNAVAILABLE", `the connection was given up: ${reason}`);
    this.giveUp(this.current, error);
  }

  protected make(): Client {
    const { onNotification } = this.#o;
    const client = new Client(clientOptions(this.#o, this.#manner));
    client.on("error", (error) => this.giveUp(client, error));
    client.on("end", () => this.ended(client, new Error("connection closed")));
    if (onNotification) {
      client.on("notification", ({ channel, payload = "" }) => onNotification(channel, payload));
    }
    return client;
  }

  protected async setUp(client: Client): Promise<void> {
    const { connectMs = CONNECT_MS, onOpen } = this.#o;
    await this.#within(client, connectMs, greet(client, this.#manner.setUp));
    await onOpen?.({ query: (statement, values = []) => this.#send(client, statement, values) });
  }

  protected destroy(client: Client, reason: unknown): void {
    socketOf(client).destroy(reason instanceof Error ? reason : undefined);
  }

  /** Polite only when there is nothing to wait for: a statement that waits for a lock, or a server that never answered. */
  protected async farewell(client: Client, open: boolean): Promise<void> {
    if (open && this.#unanswered === 0) {
      const ended = client.end().catch(() => {});
      await within(this.#o.clock, FAREWELL_MS, ended);
    }
    this.destroy(client, new BatonError("STOPPED", "the connection to the database is closed"));
  }

  protected translated(error: unknown): unknown {
    return error instanceof BatonError ? error : translated(error);
  }

  protected unavailable(reason: string): Error {
    return unavailable(reason);
  }

  async #send<Row>(
    client: Client,
    statement: Statement,
    values: readonly unknown[],
    deadlineMs: number | null = this.#statementMs,
  ): Promise<Row[]> {
    const config = queryOf(this.#manner, statement, inSchema(statement.text, this.schema), values);
    this.#unanswered += 1;
    try {
      const sent = this.#manner.inTurn(client, () => client.query(config));
      const result = await (deadlineMs === null ? sent : this.#within(client, deadlineMs, sent));
      return result.rows as Row[];
    } catch (error) {
      // The server says so to the statement first, and closes a moment later.
      if (isLost(error)) this.giveUp(client, error);
      throw this.translated(error);
    } finally {
      this.#unanswered -= 1;
    }
  }

  async #within<T>(client: Client, deadlineMs: number, work: Promise<T>): Promise<T> {
    const late = this.unavailable(`no answer within ${deadlineMs} ms`);
    let over = false;
    let answered = false;
    const giveUp = (): void => {
      if (answered) return;
      over = true;
      this.giveUp(client, late);
    };
    // When this thread was held up, the answer lies there unread: it is read before the end of this turn of the loop.
    const callOff = this.#o.clock.after(deadlineMs, () => void this.#o.clock.turn().then(giveUp));
    try {
      return await work;
    } catch (error) {
      throw over ? late : error;
    } finally {
      answered = true;
      callOff();
    }
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

/** The server keeps no more. A uuid leaves 20 for the node's name. */
const BYTES_MAX = 63;

/** `baton/<incarnation>/<name>` in `pg_stat_activity`, by which the next leader finds all connections of a paused one. */
export function applicationName({ name, incarnation }: NodeIdentity): string {
  return `${applicationPrefix(incarnation)}${name}`.slice(0, BYTES_MAX);
}

export function applicationPrefix(incarnation: string): string {
  return `baton/${incarnation}/`.slice(0, BYTES_MAX);
}
