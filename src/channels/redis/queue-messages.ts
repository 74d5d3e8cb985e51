/**
 * The messages of queues, stored by scripts (queue-keys.ts). The steps of all consumers of a node are sent together:
 * one command for all consumers that finished or began during the previous command.
 */

import { Batcher } from "../../platform/batcher.ts";
import type { RedisCommands } from "../../platform/drivers/redis/session.ts";
import type { EncodedMessage } from "../message-encoding.ts";
import { RETURN, SEND } from "./queue-scripts.ts";
import { STEPS } from "./queue-step-script.ts";

export interface Taken {
  /** Of this take alone: what was taken again by another is not ours any more. */
  readonly token: string;
  readonly queue: string;
  /** Per key in the order of sending. */
  readonly messages: readonly TakenMessage[];
}

export interface TakenMessage {
  readonly id: string;
  /** As JSON text, so that any string can be one. */
  readonly keyText: string;
  readonly text: string;
  readonly deliveries: number;
}

/** A consumer of this node in one queue. */
export interface QueueConsumer {
  readonly queue: string;
  /** Of this node alone. */
  readonly number: number;
  /** Whether Redis knows that this node uses the queue. */
  joined: boolean;
  /** Whether it may stand among those who want to be woken. */
  registered: boolean;
}

/** Who speaks: the consumer's name at the moment, and the number of its connection. */
export interface Speaker {
  readonly name: string;
  readonly connection: number;
}

export interface QueueMessagesOptions {
  readonly session: RedisCommands;
  readonly key: (...parts: readonly string[]) => string;
  readonly speaker: () => Speaker;
  /** Steps were refused or may have been half done: what Redis believes of us has to be looked at. */
  readonly onDoubt: (error: unknown) => void;
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

/** Lua can hand on some 8,000 values at a time; a message takes up to four. */
export const TAKE_MAX = 1_000;
/** A script keeps Redis from everybody else: a millisecond or two each. */
const SEND_MAX = 200;
const SEND_LENGTH_MAX = 250_000;
const STEPS_MAX = 100;
/** Of finished messages in one command, for the same reason. */
const STEPS_WEIGHT_MAX = 1_000;
const RETURN_MAX = 200;

export class QueueMessages {
  readonly #o: QueueMessagesOptions;
  readonly #prefix: string;
  readonly #outbox: Batcher<Sending, Outcome>;
  readonly #steps: Batcher<Step, Outcome>;
  /** Takes that may be ours: asked for, or not finished yet. */
  readonly #open = new Map<string, Set<string>>();
  #takes = 0;

  constructor(options: QueueMessagesOptions) {
    this.#o = options;
    this.#prefix = options.key("");
    this.#outbox = new Batcher({ flush: (batch) => this.#send(batch) });
    this.#steps = new Batcher({ flush: (batch) => this.#run(batch), batchMax: 2_000 });
  }

  /**
   * On each new connection: a script that the server does not know is sent a second time in full, and would come behind what was sent
   * after it.
   */
  async prepare(session: RedisCommands): Promise<void> {
    const loaded = [SEND, STEPS].map(({ text }) => session.send(["SCRIPT", "LOAD", text]));
    await Promise.all(loaded.map((loading) => loading.catch(() => {}))); // not permitted: then in full
  }

  /** In the order given. */
  async send(queue: string, messages: readonly EncodedMessage[]): Promise<void> {
    valueOf(await this.#outbox.add({ queue, messages }));
  }

  /** Null when there is nothing: it is woken when there is. */
  async take(seat: QueueConsumer, max: number): Promise<Taken | null> {
    for (;;) {
      const reply = await this.#take(seat, max);
      if (reply) return reply.messages.length > 0 ? reply : null;
    }
  }

  /** Handled. How many were not ours any more, and were not touched. */
  async done(taken: Taken, next: boolean): Promise<number> {
    const { queue, token, messages } = taken;
    const pairs = messages.flatMap(({ id, keyText }) => [id, keyText]);
    const args = ["D", queue, token, next ? "1" : "0", String(messages.length), ...pairs];
    const lost = (await this.#step(() => args, messages.length)) as number;
    this.forget(taken);
    return lost;
  }

  /** They rest for as long as told; at once if that is 0. Those that no handler has seen do not count as delivered. */
  async back(taken: Taken, restMs: number, seen: boolean): Promise<number> {
    const { queue, token, messages } = taken;
    const triples = messages.flatMap(({ id, keyText, deliveries }) => [
      id,
      keyText,
      String(seen ? deliveries : deliveries - 1),
    ]);
    const args = ["B", queue, token, String(restMs), String(messages.length), ...triples];
    const lost = (await this.#step(() => args, messages.length)) as number;
    this.forget(taken);
    return lost;
  }

  /** Whatever becomes of it: it is not ours. */
  forget({ queue, token }: Pick<Taken, "queue" | "token">): void {
    const tokens = this.#open.get(queue);
    tokens?.delete(token);
    if (tokens?.size === 0) this.#open.delete(queue);
  }

  async leave(seat: QueueConsumer, last: boolean): Promise<void> {
    await this.#step(() => ["L", seat.queue, String(seat.number), last ? "1" : "0"], 0);
  }

  /** What has rested is ready, for whoever is free. */
  async rested(queue: string): Promise<void> {
    await this.#step(() => ["R", queue], 0);
  }

  /** Somebody was woken who has gone: another one looks. */
  async passOn(queue: string): Promise<void> {
    await this.#step(() => ["W", queue], 0);
  }

  /** Gives back what Redis believes to be with us and is not: a take whose answer was lost. */
  async mend(queues: readonly string[]): Promise<void> {
    const { session, speaker } = this.#o;
    const calls: Promise<unknown>[] = [];
    for (let at = 0; at < queues.length; at += RETURN_MAX) {
      const some = queues.slice(at, at + RETURN_MAX);
      const kept = some.flatMap((queue) => [...(this.#open.get(queue) ?? [])]);
      calls.push(session.run(RETURN, [], [this.#prefix, speaker().name, some.length, ...some, ...kept]));
    }
    await Promise.all(calls);
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    await Promise.all([this.#outbox.idle(), this.#steps.idle()]);
  }

  /** Undefined when it is to be asked again. */
  async #take(seat: QueueConsumer, max: number): Promise<Taken | undefined> {
    const { queue } = seat;
    let token = "";
    const args = ({ name }: Speaker): string[] => {
      token = `${name}/${++this.#takes}`;
      const tokens = this.#open.get(queue);
      if (tokens) tokens.add(token);
      else this.#open.set(queue, new Set([token]));
      const [first, registered] = [seat.joined ? "0" : "1", seat.registered ? "1" : "0"];
      return ["T", queue, String(seat.number), token, String(Math.min(max, TAKE_MAX)), first, registered];
    };
    try {
      const reply = (await this.#step(args, 0)) as [again: (string | number)[], fresh: string[]] | [];
      seat.joined = true;
      const messages = reply.length > 0 ? messagesOf(reply as [(string | number)[], string[]]) : [];
      if (messages.length === 0) this.forget({ queue, token });
      if (reply.length > 0) seat.registered = messages.length === 0;
      return reply.length > 0 ? { token, queue, messages } : undefined;
    } catch (error) {
      this.forget({ queue, token });
      // It may have been done.
      seat.registered = true;
      throw error;
    }
  }

  async #step(args: Step["args"], weight: number): Promise<unknown> {
    return valueOf(await this.#steps.add({ args, weight }));
  }

  async #run(steps: readonly Step[]): Promise<Outcome[]> {
    const { session, key, speaker, onDoubt } = this.#o;
    const now = speaker();
    const outcomes = await Promise.all(
      split(steps, STEPS_MAX, ({ weight }) => weight, STEPS_WEIGHT_MAX).map(async (some) => {
        const args = [this.#prefix, now.name, String(now.connection)];
        for (const step of some) args.push(...step.args(now));
        try {
          const replies = await session.run<unknown[]>(STEPS, [key("consumer", now.name)], args);
          return replies.map((reply): Outcome => ({ reply }));
        } catch (error) {
          onDoubt(error);
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
        const keys = Array.from(streams.keys(), (queue) => this.#o.key("queue", queue));
        try {
          await this.#o.session.run(SEND, keys, args);
        } catch (error) {
          for (const { owner } of some) outcomes[owner] = { error };
        }
      }),
    );
    return outcomes;
  }
}

function valueOf(outcome: Outcome): unknown {
  if ("error" in outcome) throw outcome.error;
  return outcome.reply;
}

function messagesOf([again, fresh]: [(string | number)[], string[]]): TakenMessage[] {
  const messages: TakenMessage[] = [];
  for (let i = 0; i < again.length; i += 4) {
    const [id, keyText, deliveries, text] = again.slice(i, i + 4) as [string, string, number, string];
    messages.push({ id, keyText, deliveries, text });
  }
  for (let i = 0; i < fresh.length; i += 3) {
    messages.push({ id: fresh[i]!, keyText: fresh[i + 1]!, deliveries: 1, text: fresh[i + 2]! });
  }
  return messages;
}

/** In their order, in parts of at most so many and of so much together; each has at least one. */
function split<Item>(
  items: readonly Item[],
  countMax: number,
  weigh: (item: Item) => number,
  weightMax: number,
): Item[][] {
  const parts: Item[][] = [];
  let part: Item[] = [];
  let weight = 0;
  for (const item of items) {
    const more = weigh(item);
    if (part.length > 0 && (part.length >= countMax || weight + more > weightMax)) {
      parts.push(part);
      part = [];
      weight = 0;
    }
    part.push(item);
    weight += more;
  }
  if (part.length > 0) parts.push(part);
  return parts;
}
