/**
 * A connection that is reopened after every loss. Blocking reads (XREAD BLOCK) and calls that must never wait for others
 * (leases, heartbeats) have one of their own.
 *
 * - It connects by itself, with growing and jittered pauses. `onOpen` runs first on each new connection, after the
 *   subscriptions are made: what it sets up is in place before any other command.
 * - Commands are sent at once, without waiting for earlier answers; commands of one turn of the event loop are sent
 *   together.
 * - No command is queued and none is sent twice: without a connection a command is rejected at once, and a command whose
 *   connection ends is rejected as `unknown` (see errors.ts). The deadline of a command ends its connection.
 */

import { createHash } from "node:crypto";
import type { RedisArgument } from "@redis/client";
import type { Clock } from "../../clock.ts";
import type { Random } from "../../random.ts";
import { Lifecycle } from "../../service.ts";
import { isNoScript, translated, unavailable } from "./errors.ts";
import { RedisConnection } from "./connection.ts";
import type { RedisAddress } from "./url.ts";
import { reconnect } from "../reconnect.ts";

export interface RedisSessionOptions {
  readonly address: RedisAddress;
  readonly clock: Clock;
  readonly random: Random;
  /** Shown in `CLIENT LIST`. No spaces. */
  readonly name?: string;
  readonly connectMs?: number;
  readonly commandMs?: number;
  /** Subscribed to on each new connection. */
  readonly channels?: readonly string[];
  readonly onMessage?: (channel: string, message: string) => void;
  /** Until it resolves, the session does not count as open; when it rejects, the connection is given up. */
  readonly onOpen?: (session: RedisCommands) => Promise<void>;
  /** Called each time the session counts as open. */
  readonly onReady?: () => void;
  /** Called in the moment in which an open connection breaks, also while nobody waits for an answer. */
  readonly onLost?: (reason: unknown) => void;
}

export interface SendOptions {
  /** Above what the command itself may wait for: BLOCK 2000 needs more than two seconds. */
  readonly deadlineMs?: number;
}

/** A script that the server runs atomically. It is sent by its digest, and in full to a server that does not have it. */
export interface RedisScript {
  /** For errors and for people who read the code. */
  readonly name: string;
  readonly text: string;
  readonly digest: string;
}

export function redisScript(name: string, text: string): RedisScript {
  return { name, text, digest: createHash("sha1").update(text).digest("hex") };
}

export interface RedisCommands {
  /** Replies are those of RESP3: a map is an object, a missing value is null. */
  send<Reply>(args: readonly RedisArgument[], options?: SendOptions): Promise<Reply>;
  /** By its digest, and once more in full if the server does not know it. */
  run<Reply>(
    script: RedisScript,
    keys: readonly string[],
    args: readonly (RedisArgument | number)[],
    options?: SendOptions,
  ): Promise<Reply>;
}

const CONNECT_MS = 5_000;
const COMMAND_MS = 5_000;

export class RedisSession extends Lifecycle implements RedisCommands {
  readonly #o: RedisSessionOptions;
  readonly #commandMs: number;
  /** Set when the connection is open and set up. */
  #line: RedisConnection | null = null;
  /** The connection in use or in the making. */
  #current: RedisConnection | null = null;
  #stopping = new AbortController();
  #opening: Promise<void> = Promise.resolve();

  constructor(options: RedisSessionOptions) {
    super();
    this.#o = options;
    this.#commandMs = options.commandMs ?? COMMAND_MS;
  }

  get open(): boolean {
    return this.#line !== null;
  }

  send<Reply>(args: readonly RedisArgument[], options: SendOptions = {}): Promise<Reply> {
    const line = this.#line;
    if (!line) return Promise.reject(unavailable("not connected", "not_done"));
    return line.send(args, options.deadlineMs ?? this.#commandMs);
  }

  run<Reply>(
    script: RedisScript,
    keys: readonly string[],
    args: readonly (RedisArgument | number)[],
    options: SendOptions = {},
  ): Promise<Reply> {
    const line = this.#line;
    if (!line) return Promise.reject(unavailable("not connected", "not_done"));
    return this.#run(line, script, keys, args, options);
  }

  /** Waits for the first connection, and rejects with the reason when there is none. */
  protected async onStart(): Promise<void> {
    this.#stopping = new AbortController();
    await this.#connect();
  }

  protected async onStop(): Promise<void> {
    this.#stopping.abort();
    this.#current?.end(new Error("the connection was closed"));
    await this.#opening;
  }

  async #connect(): Promise<void> {
    const { address, clock, connectMs = CONNECT_MS, name = "baton" } = this.#o;
    const { channels = [], onMessage = () => {}, onOpen } = this.#o;
    const line = new RedisConnection({
      address,
      clock,
      connectMs,
      name,
      onEnd: (ended, reason) => this.#ended(ended, reason),
    });
    this.#current = line;
    try {
      await line.open();
      if (channels.length > 0) await line.subscribe(channels, onMessage, this.#commandMs);
      await onOpen?.({
        send: (args, { deadlineMs = this.#commandMs } = {}) => line.send(args, deadlineMs),
        run: (script, keys, args, options = {}) => this.#run(line, script, keys, args, options),
      });
      if (line.ended) throw unavailable("the connection broke at once", "not_done");
    } catch (error) {
      line.end(error);
      throw translated(error, "not_done");
    }
    this.#line = line;
    this.#o.onReady?.();
  }

  #ended(line: RedisConnection, reason: unknown): void {
    if (this.#current === line) this.#current = null;
    if (this.#line !== line) return; // `#connect` rejects
    this.#line = null;
    this.#o.onLost?.(reason);
    const { signal } = this.#stopping;
    if (!signal.aborted) this.#opening = reconnect(() => this.#connect(), this.#o, signal);
  }

  async #run<Reply>(
    line: RedisConnection,
    script: RedisScript,
    keys: readonly string[],
    args: readonly (RedisArgument | number)[],
    { deadlineMs = this.#commandMs }: SendOptions,
  ): Promise<Reply> {
    const rest = [
      String(keys.length),
      ...keys,
      ...args.map((arg) => (typeof arg === "number" ? String(arg) : arg)),
    ];
    try {
      return await line.send<Reply>(["EVALSHA", script.digest, ...rest], deadlineMs);
    } catch (error) {
      if (!isNoScript(error)) throw error;
      return line.send<Reply>(["EVAL", script.text, ...rest], deadlineMs);
    }
  }
}
