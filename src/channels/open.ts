/** Picks the keeper of the channels port. Whatever is above it knows only the port. */

import type { Channels } from "./channels.ts";
import { MemoryChannels } from "./memory/memory.ts";
import type { MemoryChannelsOptions } from "./memory/memory.ts";
import { PostgresChannels } from "./postgres/postgres.ts";
import type { PostgresChannelsOptions } from "./postgres/postgres.ts";
import { RedisChannels } from "./redis/redis.ts";
import type { RedisChannelsOptions } from "./redis/redis.ts";

export type ChannelsChoice =
  | ({ readonly kind: "memory" } & MemoryChannelsOptions)
  | ({ readonly kind: "postgres" } & PostgresChannelsOptions)
  | ({ readonly kind: "redis" } & RedisChannelsOptions);

export function openChannels(choice: ChannelsChoice): Channels {
  switch (choice.kind) {
    case "memory":
      return new MemoryChannels(choice);
    case "postgres":
      return new PostgresChannels(choice);
    case "redis":
      return new RedisChannels(choice);
  }
}
