/**
 * The two modes of a connection: direct, or through a pooler.
 *
 * Direct: the session is set up once, statements are prepared by name and sent without waiting for earlier answers. Through a pooler
 * (pooler-check.ts) the next transaction runs in another session, and other clients get this one: settings end with their transaction, and
 * statements have no names. Some poolers also cannot separate several statements that arrive at once.
 */

import type { Socket } from "node:net";
import type { ClientBase, Connection } from "pg";
import type { Clock } from "../../clock.ts";
import { NoAnswer } from "./errors.ts";

/** The socket of a connection, to cut it without a word to the other end, which may not hear it. */
export function socketOf(client: ClientBase): Socket {
  return (client as unknown as { connection: Connection }).connection.stream as Socket;
}

export function cut(client: ClientBase): void {
  socketOf(client).destroy();
}

/** Cuts the connections when the work takes longer: it fails then. */
export async function inTime<Result>(
  clock: Clock,
  deadlineMs: number,
  clients: readonly ClientBase[],
  work: () => Promise<Result>,
): Promise<Result> {
  let late = false;
  const callOff = clock.after(deadlineMs, () => {
    late = true;
    clients.forEach(cut);
  });
  try {
    return await work();
  } catch (error) {
    throw late ? new NoAnswer(deadlineMs, error) : error;
  } finally {
    callOff();
  }
}

export interface ConnectionMode {
  /** Said on each new connection; null where that is not ours to say. */
  readonly setUp: string | null;
  readonly begin: string;
  /** Under what a statement is prepared; "" is for this one time. */
  name(statement: { readonly name: string }): string;
  readonly pipelined: boolean;
  /** Calls `send` when its turn has come on that connection. */
  inTurn<T>(connection: object, send: () => Promise<T>): Promise<T>;
}

/** Plans must not depend on statistics, which may say "empty" of a table that just was: no sequential scan where an index will do. */
const PLANS = [
  // Whatever the database's own default is: our statements see what was committed before each of them.
  "default_transaction_isolation = 'read committed'",
  "jit = off",
  // Starting a process takes longer than any statement of ours: 30 ms for a list of queues that takes 1.
  "max_parallel_workers_per_gather = 0",
  "enable_seqscan = off",
  "enable_bitmapscan = off",
  "enable_mergejoin = off",
  "enable_hashjoin = off",
];

/** How soon the server gives up a connection whose other end is gone: what it holds is then free. */
const KEEPALIVES = [
  "tcp_keepalives_idle = 10",
  "tcp_keepalives_interval = 3",
  "tcp_keepalives_count = 3",
  "tcp_user_timeout = 10000",
];

/**
 * Behind a pooler no node can end the session of a leader that stands still inside a transaction, and its successor waits for this. Shorter,
 * and a node that is held up for a moment loses what it was about to commit.
 */
const IDLE_MS_POOLED = 5_000;

export function directly(statementMs: number): ConnectionMode {
  const settings = [
    `statement_timeout = ${statementMs}`,
    `idle_in_transaction_session_timeout = ${statementMs}`,
    ...PLANS,
    "plan_cache_mode = force_generic_plan",
    ...KEEPALIVES,
  ];
  return {
    setUp: settings.map((setting) => `SET ${setting}`).join("; "),
    begin: "BEGIN",
    name: (statement) => statement.name,
    pipelined: true,
    inTurn: (_, send) => send(),
  };
}

/** A single statement does without settings: it would take three round trips to have them. Our own deadline covers it. */
export function throughPooler(statementMs: number): ConnectionMode {
  const settings = [
    `statement_timeout = ${statementMs}`,
    `idle_in_transaction_session_timeout = ${Math.min(statementMs, IDLE_MS_POOLED)}`,
    ...PLANS,
  ];
  const last = new WeakMap<object, Promise<unknown>>();
  return {
    setUp: null,
    begin: [
      "BEGIN ISOLATION LEVEL READ COMMITTED",
      ...settings.map((setting) => `SET LOCAL ${setting}`),
    ].join("; "),
    name: () => "",
    pipelined: false,
    inTurn(connection, send) {
      const sent = (last.get(connection) ?? Promise.resolve()).then(send);
      const settled = sent.catch(() => {});
      last.set(connection, settled);
      return sent;
    },
  };
}
