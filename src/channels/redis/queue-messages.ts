/** The messages of queues, stored by scripts (queue-scripts.ts). Steps of all consumers of a node are sent together in one command. */

import { Batcher } from "../../platform/batcher.ts";
import type { RedisCommands } from "../../platform/drivers/redis/connection.ts";
import { split } from "../../platform/loop.ts";
import type { OpenedQueue } from "../base-channels.ts";
import type { EncodedMessage } from "../message-encoding.ts";
import type { QueueSource, Taken, TakenMessage } from "../queue-consumer.ts";
import type { ConsumerHeartbeat, Speaker } from "./consumer-heartbeat.ts";
import type { RedisLink } from "./link.ts";
import { isStale, SEND, STEPS } from "./queue-scripts.ts";

interface TakenEntries extends Taken {
  /** The name of this node when it took them: under another name they are not ours any more. */
  readonly name: string;
  readonly ids: readonly string[];
}

interface Sending {
  readonly queue: string;
  readonly messages: readonly EncodedMessage[];
}

interface Step {
  /** With the speaker of the moment, since a step may wait for its turn. */
  readonly args: (speaker: Speaker) => string[];
  readonly weight: number;
}

type Outcome = { readonly reply: unknown } | { readonly error: unknown };
type TakeReply = [again: (string | number)[], fresh: string[]] | [];

/** Lua can pass some 8,000 values at a time; a message takes up to four. */
const TAKE_MAX = 1_000;
/** A script blocks Redis for everybody else: a millisecond or two each. */
const SEND_MAX = 200;
const SEND_LENGTH_MAX = 250_000;
const STEPS_MAX = 100;
/** Of finished messages in one command, for the same reason. */
const STEPS_WEIGHT_MAX = 1_000;

export class QueueMessages {
  readonly #link: RedisLink;
  readonly #presence: ConsumerHeartbeat;
  readonly #prefix: string;
  readonly #outbox: Batcher<Sending, Outcome>;
  readonly #steps: Batcher<Step, Outcome>;

  constructor(link: RedisLink, presence: ConsumerHeartbeat) {
    this.#link = link;
    this.#presence = presence;
    this.#prefix = link.key("");
    this.#outbox = new Batcher({ clock: link.clock, flush: (batch) => this.#send(batch) });
    this.#steps = new Batcher({ clock: link.clock, flush: (batch) => this.#run(batch), batchMax: 2_000 });
  }

  /** On each new connection: a script that the server does not know is sent again in full, and would come behind what was sent after it. */
  async prepare(session: RedisCommands): Promise<void> {
    const loaded = [SEND, STEPS].map(({ text }) => session.send(["SCRIPT", "LOAD", text]));
    await Promise.all(loaded.map((loading) => loading.catch(() => {}))); // not permitted: then in full
  }

  async send(queue: string, messages: readonly EncodedMessage[]): Promise<void> {
    valueOf(await this.#outbox.add({ queue, messages }));
  }

  source(opened: OpenedQueue, number: number): RedisSource {
    const step = (args: Step["args"], weight: number) => this.#step(args, weight);
    return new RedisSource({ ...opened, number, step, presence: this.#presence, log: this.#link.log });
  }

  /** What was given back may be due, for any consumer that is idle. */
  async due(queue: string): Promise<void> {
    await this.#step(() => ["R", queue], 0);
  }

  /** A consumer was woken that has gone: another one takes. */
  async passOn(queue: string): Promise<void> {
    await this.#step(() => ["W", queue], 0);
  }

  async idle(): Promise<void> {
    await Promise.all([this.#outbox.idle(), this.#steps.idle()]);
  }

  async #step(args: Step["args"], weight: number): Promise<unknown> {
    return valueOf(await this.#steps.add({ args, weight }));
  }

  async #run(steps: readonly Step[]): Promise<Outcome[]> {
    const { session, key } = this.#link;
    const now = this.#presence.speaker;
    const outcomes = await Promise.all(
      split(steps, STEPS_MAX, ({ weight }) => weight, STEPS_WEIGHT_MAX).map(async (some) => {
        const args = [this.#prefix, now.name, String(now.connection)];
        for (const step of some) args.push(...step.args(now));
        try {
          const replies = await session.run<unknown[]>(STEPS, [key("consumer", now.name)], args);
          return replies.map((reply): Outcome => ({ reply }));
        } catch (error) {
          if (isStale(error)) void this.#presence.beat().catch(() => {}); // the next one tries again
          return some.map((): Outcome => ({ error }));
        }
      }),
    );
    return outcomes.flat();
  }

  async #send(batch: readonly Sending[]): Promise<Outcome[]> {
    const all = batch.flatMap(({ queue, messages }, owner) =>
      messages.map((message) => ({ owner, queue, ...message })),
    );
    const outcomes = batch.map((): Outcome => ({ reply: undefined }));
    await Promise.all(
      split(all, SEND_MAX, ({ text }) => text.length, SEND_LENGTH_MAX).map(async (some) => {
        const streams = new Map<string, string>();
        const args: string[] = [this.#prefix];
        for (const { queue, key, text } of some) {
          let at = streams.get(queue);
          if (at === undefined) streams.set(queue, (at = String(streams.size + 1)));
          args.push(at, JSON.stringify(key), text);
        }
        const keys = Array.from(streams.keys(), (queue) => this.#link.key("queue", queue));
        try {
          await this.#link.session.run(SEND, keys, args);
        } catch (error) {
          for (const { owner } of some) outcomes[owner] = { error };
        }
      }),
    );
    return outcomes;
  }
}

interface RedisSourceOptions extends OpenedQueue, Pick<RedisLink, "log"> {
  readonly presence: ConsumerHeartbeat;
  /** Of this node alone. */
  readonly number: number;
  readonly step: (args: Step["args"], weight: number) => Promise<unknown>;
}

/** A consumer of this node in one queue, as Redis knows it. */
export class RedisSource implements QueueSource<TakenEntries> {
  readonly renewMs = null;
  readonly #o: RedisSourceOptions;
  /** Whether Redis knows that this node uses the queue. */
  #joined = false;
  /** Whether it may be in the list of those that wait. */
  #listed = false;
  /** The answer to an earlier step was lost, so Redis may have given us something. */
  #lost = false;

  constructor(options: RedisSourceOptions) {
    this.#o = options;
  }

  get number(): number {
    return this.#o.number;
  }

  take(): Promise<TakenEntries | null> {
    return this.#take(this.#o.batchMax, null);
  }

  done(batch: TakenEntries, next: boolean): Promise<TakenEntries | null> {
    return this.#take(next ? this.#o.batchMax : 0, batch);
  }

  async back(batch: TakenEntries, restMs: number, seen: boolean): Promise<void> {
    const { queue, number, step } = this.#o;
    const pairs = batch.ids.flatMap((id, i) => {
      const { deliveries } = batch.messages[i]!;
      return [id, String(seen ? deliveries : deliveries - 1)];
    });
    const args = ({ name }: Speaker): string[] => {
      const ours = name === batch.name ? pairs : [];
      return ["B", queue, String(number), String(restMs), String(ours.length / 2), ...ours];
    };
    try {
      await step(args, batch.ids.length);
    } catch (error) {
      this.#lost = true;
      throw error;
    }
  }

  /** The heartbeat of the node renews everything that it has. */
  async renew(): Promise<boolean> {
    return true;
  }

  oursUntil({ name }: TakenEntries): number {
    const { speaker, oursUntil } = this.#o.presence;
    return speaker.name === name ? oursUntil : -Infinity;
  }

  async leave(last: boolean): Promise<void> {
    const { queue, number, step } = this.#o;
    await step(() => ["L", queue, String(number), last ? "1" : "0"], 0);
  }

  woken(): void {
    this.#listed = false;
  }

  forgotten(): void {
    this.#joined = false;
    this.#listed = false;
  }

  async #take(max: number, handled: TakenEntries | null): Promise<TakenEntries | null> {
    const { queue, number, exclusive, step, log } = this.#o;
    let finished = handled;
    for (;;) {
      let name = "";
      let lost = false;
      const args = (speaker: Speaker): string[] => {
        name = speaker.name;
        lost = finished !== null && finished.name !== name;
        const flags = `${exclusive ? "x" : ""}${this.#joined ? "" : "f"}${this.#listed ? "i" : ""}${this.#lost ? "l" : ""}`;
        const ids = lost ? [] : (finished?.ids ?? []);
        const count = String(Math.min(max, TAKE_MAX));
        return ["T", queue, String(number), count, flags || "-", String(ids.length), ...ids];
      };
      let reply: TakeReply;
      try {
        reply = (await step(args, finished?.ids.length ?? 0)) as TakeReply;
      } catch (error) {
        this.#lost = true;
        this.#listed = true;
        throw error;
      }
      this.#joined = true;
      this.#lost = false;
      if (lost) {
        const fields = { queue, messages: finished!.ids.length };
        log?.warn(fields, "this node was taken for dead; a batch went to another consumer");
      }
      finished = null;
      if (reply.length === 0) continue; // too much for one command
      const taken = entriesOf(name, reply);
      if (max > 0) this.#listed = taken === null;
      return taken;
    }
  }
}

function entriesOf(name: string, [again, fresh]: [(string | number)[], string[]]): TakenEntries | null {
  const ids: string[] = [];
  const messages: TakenMessage[] = [];
  for (let i = 0; i < again.length; i += 4) {
    const [id, key, deliveries, text] = again.slice(i, i + 4) as [string, string, number, string];
    ids.push(id);
    messages.push({ key: JSON.parse(key) as string, deliveries, text });
  }
  for (let i = 0; i < fresh.length; i += 3) {
    ids.push(fresh[i]!);
    messages.push({ key: JSON.parse(fresh[i + 1]!) as string, deliveries: 1, text: fresh[i + 2]! });
  }
  return ids.length === 0 ? null : { name, ids, messages };
}

function valueOf(outcome: Outcome): unknown {
  if ("error" in outcome) throw outcome.error;
  return outcome.reply;
}
