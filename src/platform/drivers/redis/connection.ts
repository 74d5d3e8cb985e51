/**
 * One connection to Redis, never opened again. The client library only speaks the protocol: it neither reconnects nor queues commands,
 * because a command that is sent again may take effect twice.
 *
 * Every command has a deadline. When it passes, the connection ends: answers arrive in order, so a late one delays all later ones. Commands
 * that wait for an answer then are rejected at once, and answers that arrive afterwards are ignored.
 */

import { createHash } from "node:crypto";
import type { RedisArgument } from "@redis/client";
import type { Clock } from "../../clock.ts";
import { isElsewhere, isNoScript, translated, type RedisOutcome } from "./errors.ts";
import type { RedisAddress } from "../server-url.ts";
import { createClient } from "./package.ts";

export interface SendOptions {
  /** Above what the command itself may wait for: BLOCK 2000 needs more than two seconds. */
  readonly deadlineMs?: number;
}

/** A script that the server runs atomically. It is sent by its digest, and in full to a server that does not have it. */
export interface RedisScript {
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
  run<Reply>(
    script: RedisScript,
    keys: readonly string[],
    args: readonly (RedisArgument | number)[],
    options?: SendOptions,
  ): Promise<Reply>;
}

export interface RedisConnectionOptions {
  readonly address: RedisAddress;
  readonly clock: Clock;
  readonly connectMs: number;
  readonly commandMs: number;
  /** Shown in `CLIENT LIST`. No spaces. */
  readonly name: string;
  readonly onEnd: (line: RedisConnection, reason: unknown) => void;
}

interface Call {
  readonly since: number;
  readonly reject: (error: unknown) => void;
}

/** Calls with the same deadline, oldest first, and one timer for all of them: a timer each costs more than the command. */
interface Watch {
  readonly calls: Set<Call>;
  callOff: (() => void) | null;
}

type RedisClient = ReturnType<typeof newClient>;

/** The first probe of a silent connection; also the system's default of two hours would let half-open lines pile up. */
const KEEP_ALIVE_MS = 10_000;

export class RedisConnection implements RedisCommands {
  readonly #o: RedisConnectionOptions;
  readonly #client: RedisClient;
  readonly #watches = new Map<number, Watch>();
  #ended: { readonly reason: unknown } | null = null;

  constructor(options: RedisConnectionOptions) {
    this.#o = options;
    this.#client = newClient(options);
    this.#client.on("error", (error) => this.end(error));
    this.#client.on("end", () => this.end(new Error("connection closed")));
  }

  async open(): Promise<void> {
    try {
      await this.#use((client) => client.connect(), this.#o.connectMs);
    } catch (error) {
      this.end(error);
      throw error;
    }
  }

  get ended(): boolean {
    return this.#ended !== null;
  }

  send<Reply>(args: readonly RedisArgument[], { deadlineMs }: SendOptions = {}): Promise<Reply> {
    return this.#use((client) => client.sendCommand(args) as unknown as Promise<Reply>, deadlineMs);
  }

  async run<Reply>(
    script: RedisScript,
    keys: readonly string[],
    args: readonly (RedisArgument | number)[],
    options?: SendOptions,
  ): Promise<Reply> {
    const rest = [
      String(keys.length),
      ...keys,
      ...args.map((arg) => (typeof arg === "number" ? String(arg) : arg)),
    ];
    try {
      return await this.send<Reply>(["EVALSHA", script.digest, ...rest], options);
    } catch (error) {
      if (!isNoScript(error)) throw error;
      return this.send<Reply>(["EVAL", script.text, ...rest], options);
    }
  }

  async subscribe(
    channels: readonly string[],
    onMessage: (channel: string, message: string) => void,
  ): Promise<void> {
    await this.#use((client) =>
      client.subscribe([...channels], (message, channel) => onMessage(channel, message)),
    );
  }

  #use<Reply>(work: (client: RedisClient) => Promise<Reply>, deadlineMs = this.#o.commandMs): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#ended) return reject(this.#lost("not_done"));
      const { calls } = this.#watch(deadlineMs);
      const call: Call = { since: this.#o.clock.monotonic(), reject };
      calls.add(call);
      work(this.#client).then(
        (reply) => {
          if (calls.delete(call)) resolve(reply);
        },
        (error: unknown) => {
          if (!calls.delete(call)) return;
          reject(translated(error, "unknown"));
          if (isElsewhere(error)) this.end(error);
        },
      );
    });
  }

  /** Also rejects every command that waits for an answer. */
  end(reason: unknown): void {
    if (this.#ended) return;
    this.#ended = { reason };
    const waiting = [...this.#watches.values()].flatMap(({ calls }) => [...calls]);
    for (const { calls, callOff } of this.#watches.values()) {
      callOff?.();
      calls.clear();
    }
    this.#client.destroy();
    for (const { reject } of waiting) reject(this.#lost("unknown"));
    this.#o.onEnd(this, reason);
  }

  #lost(outcome: RedisOutcome): unknown {
    return translated(this.#ended?.reason, outcome);
  }

  #watch(deadlineMs: number): Watch {
    let watch = this.#watches.get(deadlineMs);
    if (!watch) this.#watches.set(deadlineMs, (watch = { calls: new Set(), callOff: null }));
    if (watch.callOff === null) this.#arm(watch, deadlineMs, deadlineMs);
    return watch;
  }

  #arm(watch: Watch, inMs: number, deadlineMs: number): void {
    // When this thread was held up, the answer lies there unread: it is read before the end of this turn of the loop.
    watch.callOff = this.#o.clock.after(inMs, () => {
      void this.#o.clock.turn().then(() => this.#check(watch, deadlineMs));
    });
  }

  #check(watch: Watch, deadlineMs: number): void {
    watch.callOff = null;
    const [oldest] = watch.calls;
    if (!oldest || this.#ended) return;
    const leftMs = oldest.since + deadlineMs - this.#o.clock.monotonic();
    if (leftMs > 0) this.#arm(watch, leftMs, deadlineMs);
    else this.end(new Error(`no answer within ${deadlineMs} ms`));
  }
}

function newClient({ address, name, connectMs }: RedisConnectionOptions) {
  const { host, port, tls, username, password, database } = address;
  const socket = {
    host,
    port,
    connectTimeout: connectMs,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
    reconnectStrategy: false as const,
  };
  return createClient({
    RESP: 3,
    socket: tls ? { ...socket, tls: true as const } : socket,
    ...(username === null ? {} : { username }),
    ...(password === null ? {} : { password }),
    database,
    name,
    disableOfflineQueue: true,
    // Deadlines are ours; the library's own would make a timer for every command.
    commandOptions: { timeout: 0 },
    maintNotifications: "disabled",
    disableClientInfo: true,
  });
}
