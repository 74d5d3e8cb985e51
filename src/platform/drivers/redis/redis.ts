/** One Redis server as used by one cluster: its key names, sessions, and whether it can be used. */

import { BatonError } from "../../../core/errors.ts";
import type { RedisCommands } from "./connection.ts";
import { RedisSession, type RedisSessionOptions } from "./session.ts";
import { parseRedisUrl, shownAddress, type RedisAddress } from "../server-url.ts";

type Common = Pick<RedisSessionOptions, "clock" | "random" | "name" | "connectMs" | "commandMs">;

export interface RedisOptions extends Common {
  /** `redis://user:password@host:6379/0`, or `rediss://` for TLS. */
  readonly url: string;
  /** Two clusters on one server have a prefix each, and do not hear each other. */
  readonly prefix?: string;
}

type SessionOptions = Omit<RedisSessionOptions, "address" | "clock" | "random">;

/** Streams that say which entries are gone (XAUTOCLAIM), and scripts that may ask for the time and write. */
const VERSION_MIN = [6, 2] as const;

export class Redis {
  readonly keys: ReturnType<typeof redisKeys>;
  readonly #o: RedisOptions;
  readonly #address: RedisAddress;

  constructor(options: RedisOptions) {
    this.#o = options;
    this.#address = parseRedisUrl(options.url);
    this.keys = redisKeys(options.prefix, this.#address.database);
  }

  get shown(): string {
    return shownAddress(this.#address);
  }

  session(options: SessionOptions = {}): RedisSession {
    const { clock, random, name, connectMs, commandMs } = this.#o;
    const own = { name, connectMs, commandMs };
    return new RedisSession({ ...own, ...options, address: this.#address, clock, random });
  }
}

interface ServerFacts {
  /** The policy by which the server deletes keys when its memory is full; null when it deletes none. */
  readonly evicts: string | null;
}

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

const PREFIX = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

/**
 * Key names such as `{prefix}:coordinator:leader`. The braces are part of the name: they put all keys of a cluster into one hash slot, which
 * scripts with several keys need. Channels of PUBLISH belong to the whole server, so their names contain the number of the database.
 */
export function redisKeys(prefix = "baton", database = 0) {
  if (!PREFIX.test(prefix)) {
    const message = `the prefix of Redis keys ${JSON.stringify(prefix)} is not a plain name; use up to 63 letters, digits, ".", "_" and "-"`;
    throw new BatonError("BAD_CONFIG", message, { field: "redis.prefix" });
  }
  return {
    key: (...parts: readonly string[]): string => `{${prefix}}:${parts.join(":")}`,
    channel: (...parts: readonly string[]): string => `{${prefix}}:${database}:${parts.join(":")}`,
  };
}
