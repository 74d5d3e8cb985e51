/** Opens the backend of the channels interface. Callers know only the interface, and a backend is loaded when it is used. */

import type { Channels } from "./channels.ts";
import type { BaseChannelsOptions } from "./base-channels.ts";
import type { PostgresChannelsOptions } from "./postgres/channels.ts";
import type { RedisChannelsOptions } from "./redis/channels.ts";

type ChannelsChoice =
  | ({ readonly kind: "memory" } & BaseChannelsOptions)
  | ({ readonly kind: "postgres" } & PostgresChannelsOptions)
  | ({ readonly kind: "redis" } & RedisChannelsOptions);

export async function openChannels(choice: ChannelsChoice): Promise<Channels> {
  switch (choice.kind) {
    case "memory":
      return new (await import("./memory/channels.ts")).MemoryChannels(choice);
    case "postgres":
      return new (await import("./postgres/channels.ts")).PostgresChannels(choice);
    case "redis":
      return new (await import("./redis/channels.ts")).RedisChannels(choice);
  }
}
