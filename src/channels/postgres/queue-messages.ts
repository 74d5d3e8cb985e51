/**
 * The messages of queues, in the table `message`.
 *
 *     waits ---take---> taken ---done---> gone
 *       ^                 | back (the handler failed), or its time ran out (the consumer died)
 *       '-----------------'   with a growing delay, during which the next message of its key may go
 *
 * Messages of one key are a lane. A take walks from lane to lane along the primary key, skips lanes of which a message
 * is taken, and takes from the front of the others. Takes of one queue are serialized by a lock that ends with the
 * transaction: SKIP LOCKED alone would give a second taker the rest of a lane whose front the first is about to take.
 * The order per key costs 200 microseconds of a lock for up to a whole batch.
 *
 * Keys are stored as JSON text, so that any string can be one.
 */

import { type Statement, write } from "../../platform/drivers/postgres/postgres.ts";
import { texts } from "../../platform/drivers/postgres/arrays.ts";
import type { PostgresSession } from "../../platform/drivers/postgres/session.ts";
import type { EncodedMessage } from "../message-encoding.ts";

export interface Taken {
  /** Of this take alone: what was taken again by another is not ours any more. */
  readonly token: string;
  readonly queue: string;
  /** In the order of sending. */
  readonly messages: readonly TakenMessage[];
  /** The lane that a next take may begin behind, so that every lane has its turn; null when the end was reached. */
  readonly last: string | null;
}

export interface TakenMessage extends EncodedMessage {
  readonly deliveries: number;
}

/** One instant for all rows of a statement, taken when it begins: for a take that is after its wait for the lock. */
const NOW = "(extract(epoch FROM statement_timestamp()) * 1000)::bigint";

const SEND = write(
  "message-send",
  `INSERT INTO baton.message (queue, key, body)
   SELECT queue, key, body
   FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS t (queue, key, body, n) ORDER BY n`,
);
/** A take that a crash of the server undoes is only a message that nobody has taken. */
const ONE_AT_A_TIME = write(
  "message-lock",
  `SELECT set_config('synchronous_commit', 'off', true), pg_advisory_xact_lock(hashtextextended($1, 0))`,
);
const TAKE: Statement = {
  ...write(
    "message-take",
    `WITH RECURSIVE lane AS (
      (SELECT key FROM baton.message WHERE queue = $1 AND key > $2 ORDER BY key LIMIT 1)
      UNION ALL
      SELECT (SELECT m.key FROM baton.message m WHERE m.queue = $1 AND m.key > lane.key ORDER BY m.key LIMIT 1)
      FROM lane WHERE lane.key IS NOT NULL
    ),
    front AS (
      SELECT waiting.at
      FROM lane, LATERAL (
        SELECT m.ctid AS at FROM baton.message m
        WHERE m.queue = $1 AND m.key = lane.key AND (m.taken_until IS NULL OR m.taken_until <= ${NOW})
        ORDER BY m.id LIMIT $3
      ) waiting
      WHERE (
        SELECT true FROM baton.message m
        WHERE m.queue = $1 AND m.taken_key = lane.key AND m.taken_until > ${NOW} LIMIT 1
      ) IS NULL
      LIMIT $3
    )
    UPDATE baton.message m
    SET deliveries = m.deliveries + 1, consumer = $4, taken_key = m.key,
      taken_until = ${NOW} + $5::bigint
    WHERE m.ctid = ANY (ARRAY(SELECT at FROM front))
      AND (m.taken_until IS NULL OR m.taken_until <= ${NOW})
    RETURNING m.id, m.key, m.deliveries, m.body`,
  ),
  arrays: true,
};
/** Found by the index of those that are taken, which holds no more than what is being handled. */
const MINE = "queue = $1 AND taken_key = ANY ($2::text[]) AND consumer = $3";
const DONE = write("message-done", `DELETE FROM baton.message WHERE ${MINE}`);
const BACK = write(
  "message-back",
  `UPDATE baton.message
   SET consumer = NULL, taken_key = NULL, deliveries = deliveries - $5::int,
     taken_until = CASE WHEN $4::bigint > 0 THEN ${NOW} + $4::bigint END
   WHERE ${MINE}`,
);
const RENEW = write(
  "message-renew",
  `WITH renewed AS (UPDATE baton.message SET taken_until = ${NOW} + $4::bigint WHERE ${MINE} RETURNING 1)
   SELECT count(*)::int AS messages FROM renewed`,
);

export class QueueMessages {
  readonly #session: PostgresSession;
  readonly #origin: string;
  #takes = 0;
  #opening: Promise<void> | null = null;

  constructor(session: PostgresSession, origin: string) {
    this.#session = session;
    this.#origin = origin;
  }

  /** In the order given. */
  async send(messages: readonly (EncodedMessage & { readonly queue: string })[]): Promise<void> {
    await this.#open();
    await this.#session.query(SEND, [
      texts(messages.map(({ queue }) => queue)),
      texts(messages.map(({ key }) => JSON.stringify(key))),
      texts(messages.map(({ text }) => text)),
    ]);
  }

  /** From the lanes behind `after`. */
  async take(queue: string, after: string | null, max: number, leaseMs: number): Promise<Taken> {
    await this.#open();
    const token = `${this.#origin}/${++this.#takes}`;
    const [, rows] = (await this.#session.transaction([
      [ONE_AT_A_TIME, [`${this.#session.schema}.message/${queue}`]],
      [TAKE, [queue, after ?? "", max, token, leaseMs]],
    ])) as [unknown, [id: number, key: string, deliveries: number, text: string][]];
    rows.sort(([a], [b]) => a - b);
    return {
      token,
      queue,
      messages: rows.map(([, key, deliveries, text]) => ({
        key: JSON.parse(key) as string,
        deliveries,
        text,
      })),
      last: rows.length === max ? lastLane(rows.map(([, key]) => key)) : null,
    };
  }

  async done(taken: Taken): Promise<void> {
    await this.#session.query(DONE, mine(taken));
  }

  /** They rest for as long as told; at once if that is 0. Those that no handler has seen do not count as delivered. */
  async back(taken: Taken, restMs: number, seen: boolean): Promise<void> {
    await this.#session.query(BACK, [...mine(taken), restMs, seen ? 0 : 1]);
  }

  /** How many are still ours. */
  async renew(taken: Taken, leaseMs: number): Promise<number> {
    const [row] = await this.#session.query<{ messages: number }>(RENEW, [...mine(taken), leaseMs]);
    return row!.messages;
  }

  /** The connection is opened by the first who needs it: a node that uses no queues has none for them. */
  async #open(): Promise<void> {
    if (this.#session.running) return;
    this.#opening ??= this.#session.start().finally(() => (this.#opening = null));
    await this.#opening;
  }
}

function lastLane(keys: readonly string[]): string {
  return keys.reduce((last, key) => (key > last ? key : last));
}

function mine({ queue, messages, token }: Taken): unknown[] {
  const keys = new Set(messages.map(({ key }) => JSON.stringify(key)));
  return [queue, texts([...keys]), token];
}
