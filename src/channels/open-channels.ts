/** Opens the channels backend that the options name. Code above it knows only channels.ts. */

import type { Channels } from "./channels.ts";
import { MemoryChannels } from "./memory/channels.ts";
import type { MemoryChannelsOptions } from "./memory/channels.ts";
import { PostgresChannels } from "./postgres/channels.ts";
import type { PostgresChannelsOptions } from "./postgres/channels.ts";
import { RedisChannels } from "./redis/channels.ts";
import type { RedisChannelsOptions } from "./redis/channels.ts";

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
