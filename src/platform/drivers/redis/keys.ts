/**
 * The key names of a cluster on a Redis server: `{prefix}:coordinator:leader`. The braces are part of the name. They
 * put all keys of one cluster into one hash slot, which scripts with several keys need wherever keys are sharded.
 *
 * Channels of PUBLISH belong to the whole server, whatever database a connection has selected, so their names contain
 * the number of the database.
 */

import { BatonError } from "../../../core/errors.ts";

const PREFIX = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

export class RedisKeys {
  readonly prefix: string;
  readonly #tag: string;
  readonly #database: number;

  constructor(prefix = "baton", database = 0) {
    if (!PREFIX.test(prefix)) {
      throw new BatonError(
        "BAD_CONFIG",
        `the prefix of Redis keys ${JSON.stringify(prefix)} is not a plain name; use up to 63 letters, digits, ".", "_" and "-"`,
        { field: "redis.prefix" },
      );
    }
    this.prefix = prefix;
    this.#tag = `{${prefix}}`;
    this.#database = database;
  }

  key(...parts: readonly string[]): string {
    return `${this.#tag}:${parts.join(":")}`;
  }

  channel(...parts: readonly string[]): string {
    return `${this.#tag}:${this.#database}:${parts.join(":")}`;
  }
}
