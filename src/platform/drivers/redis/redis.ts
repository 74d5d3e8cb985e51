/**
 * One Redis server as used by one cluster: its key names, a shared connection for short commands, and dedicated
 * connections for blocking reads and leases.
 */

import type { RedisArgument } from "@redis/client";
import { BatonError } from "../../../core/errors.ts";
import type { Clock } from "../../clock.ts";
import type { Random } from "../../random.ts";
import { Lifecycle } from "../../service.ts";
import { RedisKeys } from "./keys.ts";
import type { RedisScript } from "./script.ts";
import { RedisSession, type RedisCommands, type RedisSessionOptions, type SendOptions } from "./session.ts";
import { parseRedisUrl, shownAddress, type RedisAddress } from "./url.ts";

export interface RedisOptions {
  /** `redis://user:password@host:6379/0`, or `rediss://` for TLS. */
  readonly url: string;
  readonly prefix?: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Shown in `CLIENT LIST`. No spaces. */
  readonly name?: string;
  readonly connectMs?: number;
  readonly commandMs?: number;
}

/** What a session of its own may choose for itself. */
export type DedicatedOptions = Partial<Omit<RedisSessionOptions, "address" | "clock" | "random">>;

/** Streams that say which entries are gone (XAUTOCLAIM), and scripts that may ask for the time and write. */
const VERSION_MIN = [6, 2] as const;

export class Redis extends Lifecycle implements RedisCommands {
  readonly keys: RedisKeys;
  readonly #o: RedisOptions;
  readonly #address: RedisAddress;
  readonly #shared: RedisSession;

  constructor(options: RedisOptions) {
    super();
    this.#o = options;
    this.#address = parseRedisUrl(options.url);
    this.keys = new RedisKeys(options.prefix, this.#address.database);
    this.#shared = this.dedicated();
  }

  /** For people: without the password. */
  get shown(): string {
    return shownAddress(this.#address);
  }

  get open(): boolean {
    return this.#shared.open;
  }

  send<Reply>(args: readonly RedisArgument[], options?: SendOptions): Promise<Reply> {
    return this.#shared.send(args, options);
  }

  run<Reply>(
    script: RedisScript,
    keys: readonly string[],
    args: readonly (RedisArgument | number)[],
    options?: SendOptions,
  ): Promise<Reply> {
    return this.#shared.run(script, keys, args, options);
  }

  /** Whoever asks for it starts and stops it. */
  dedicated(options: DedicatedOptions = {}): RedisSession {
    const { clock, random, name, connectMs, commandMs } = this.#o;
    return new RedisSession({
      ...(name === undefined ? {} : { name }),
      ...(connectMs === undefined ? {} : { connectMs }),
      ...(commandMs === undefined ? {} : { commandMs }),
      ...options,
      address: this.#address,
      clock,
      random,
    });
  }

  protected async onStart(): Promise<void> {
    await this.#shared.start();
    try {
      await checkRedis(this.#shared, this.shown);
    } catch (error) {
      await this.#shared.stop();
      throw error;
    }
  }

  protected async onStop(): Promise<void> {
    await this.#shared.stop();
  }
}

export interface ServerFacts {
  /** By which policy the server throws keys away when its memory is full; null when it throws away none. */
  readonly evicts: string | null;
}

/** Whether the server can be worked with, looked at once at the start. */
export async function checkRedis(session: RedisCommands, shown: string): Promise<ServerFacts> {
  const info = await session.send<string>(["INFO"]);
  const fact = (name: string): string => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1] ?? "";
  const wrong = (what: string): BatonError =>
    new BatonError("BAD_CONFIG", `the Redis server at ${shown} ${what}`, { field: "redis" });
  const [major = 0, minor = 0] = fact("redis_version").split(".").map(Number);
  if (major < VERSION_MIN[0] || (major === VERSION_MIN[0] && minor < VERSION_MIN[1])) {
    throw wrong(`has version ${fact("redis_version")}, and ${VERSION_MIN.join(".")} or later is needed`);
  }
  if (fact("role") === "slave") {
    throw wrong("is a replica, which takes no writes; give the URL of the primary");
  }
  const policy = fact("maxmemory_policy");
  return { evicts: policy === "" || policy === "noeviction" || fact("maxmemory") === "0" ? null : policy };
}
