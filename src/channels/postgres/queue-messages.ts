/**
 * The messages of queues, in the table `message`. Keys are stored as JSON text, so that any string can be one.
 *
 *     waits ---take---> taken ---done---> gone
 *       ^                 | back (the handler failed), or its lease expired (the consumer died)
 *       '-----------------'   with a growing delay
 *
 * A take locks the first free rows of the queue and skips those that another take has locked. A take of an exclusive queue locks the queue,
 * and takes nothing while the first row is taken or waits for its redelivery.
 */

import type { Clock } from "../../platform/clock.ts";
import { type Statement, write } from "../../platform/drivers/postgres/postgres.ts";
import { texts } from "../../platform/drivers/postgres/arrays.ts";
import type { PostgresSession } from "../../platform/drivers/postgres/session.ts";
import type { OpenedQueue } from "../base-channels.ts";
import type { EncodedMessage } from "../message-encoding.ts";
import type { QueueSource, Taken, TakenMessage } from "../queue-consumer.ts";

export interface TakenRows extends Taken {
  /** Of this take alone: what was taken again by another is not ours any more. */
  readonly token: string;
  readonly ids: readonly number[];
  /** On our monotonic clock, counted from before the database heard of it. */
  oursUntil: number;
}

/** One instant for all rows of a statement, taken when it begins: for a take that is after its wait for the lock. */
const NOW = "(extract(epoch FROM statement_timestamp()) * 1000)::bigint";
/** Two renewals may be late before the batch goes to another. */
const RENEWALS = 3;

const SEND = write(
  "message-send",
  `INSERT INTO baton.message (queue, key, body)
   SELECT queue, key, body
   FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS t (queue, key, body, n) ORDER BY n`,
);
/**
 * A take that a crash of the server undoes is only a message that is not taken. Without statistics, as after a flood of messages, the planner
 * would sort the whole queue for each take: 0.1 s at 20,000 messages.
 */
const BEFORE_TAKE = write(
  "message-before-take",
  `SELECT set_config('synchronous_commit', 'off', true), set_config('enable_sort', 'off', true),
     set_config('enable_bitmapscan', 'off', true),
     CASE WHEN $2 THEN pg_advisory_xact_lock(hashtextextended($1, 0)) END`,
);
const TAKE: Statement = {
  ...write(
    "message-take",
    `WITH front AS MATERIALIZED (
      SELECT ctid AS at FROM baton.message
      WHERE queue = $1 AND (taken_until IS NULL OR taken_until <= ${NOW})
        AND NOT ($5 AND coalesce(
          (SELECT taken_until FROM baton.message WHERE queue = $1 ORDER BY id LIMIT 1) > ${NOW}, false
        ))
      ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
    )
    UPDATE baton.message m SET deliveries = m.deliveries + 1, consumer = $3, taken_until = ${NOW} + $4::bigint
    WHERE m.ctid = ANY (ARRAY(SELECT at FROM front))
    RETURNING m.id, m.key, m.deliveries, m.body`,
  ),
  arrays: true,
};
const MINE = "queue = $1 AND id = ANY ($2::bigint[]) AND consumer = $3";
const DONE = write("message-done", `DELETE FROM baton.message WHERE ${MINE}`);
const BACK = write(
  "message-back",
  `UPDATE baton.message
   SET consumer = NULL, deliveries = deliveries - $5::int,
     taken_until = CASE WHEN $4::bigint > 0 THEN ${NOW} + $4::bigint END
   WHERE ${MINE}`,
);
const RENEW = write(
  "message-renew",
  `WITH renewed AS (UPDATE baton.message SET taken_until = ${NOW} + $4::bigint WHERE ${MINE} RETURNING 1)
   SELECT count(*)::int AS messages FROM renewed`,
);

export interface QueueMessagesOptions {
  readonly session: PostgresSession;
  readonly clock: Clock;
  readonly origin: string;
  readonly leaseMs: number;
}

export class QueueMessages {
  readonly #o: QueueMessagesOptions;
  #takes = 0;
  #opening: Promise<void> | null = null;

  constructor(options: QueueMessagesOptions) {
    this.#o = options;
  }

  async send(messages: readonly (EncodedMessage & { readonly queue: string })[]): Promise<void> {
    await this.#open();
    await this.#o.session.query(SEND, [
      texts(messages.map(({ queue }) => queue)),
      texts(messages.map(({ key }) => JSON.stringify(key))),
      texts(messages.map(({ text }) => text)),
    ]);
  }

  source(opened: OpenedQueue): QueueSource<TakenRows> {
    const { session, clock, leaseMs } = this.#o;
    const mine = ({ ids, token }: TakenRows): unknown[] => [opened.queue, ids, token];
    return {
      take: () => this.#take(opened),
      done: async (batch) => void (await session.query(DONE, mine(batch))),
      back: async (batch, restMs, seen) =>
        void (await session.query(BACK, [...mine(batch), restMs, seen ? 0 : 1])),
      renew: async (batch) => {
        const sentAt = clock.monotonic();
        const [row] = await session.query<{ messages: number }>(RENEW, [...mine(batch), leaseMs]);
        batch.oursUntil = sentAt + leaseMs;
        return row!.messages === batch.ids.length;
      },
      renewMs: leaseMs / RENEWALS,
      oursUntil: (batch) => batch.oursUntil,
    };
  }

  async #take({ queue, batchMax, exclusive }: OpenedQueue): Promise<TakenRows | null> {
    await this.#open();
    const { session, clock, origin, leaseMs } = this.#o;
    const token = `${origin}/${++this.#takes}`;
    const sentAt = clock.monotonic();
    const [, rows] = (await session.transaction([
      [BEFORE_TAKE, [`${session.schema}.message/${queue}`, exclusive]],
      [TAKE, [queue, batchMax, token, leaseMs, exclusive]],
    ])) as [unknown, [id: number, key: string, deliveries: number, text: string][]];
    if (rows.length === 0) return null;
    rows.sort(([a], [b]) => a - b);
    const messages = rows.map(([, key, deliveries, text]): TakenMessage => {
      return { key: JSON.parse(key) as string, deliveries, text };
    });
    return { token, ids: rows.map(([id]) => id), messages, oursUntil: sentAt + leaseMs };
  }

  /** The first use opens the connection: a node that uses no queues has none for them. */
  async #open(): Promise<void> {
    const { session } = this.#o;
    if (session.running) return;
    this.#opening ??= session.start().finally(() => (this.#opening = null));
    await this.#opening;
  }
}
