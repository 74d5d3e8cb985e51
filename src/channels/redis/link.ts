import type { RedisCommands } from "../../platform/drivers/redis/connection.ts";
import type { Platform } from "../../platform/platform.ts";

export interface RedisLink extends Pick<Platform, "clock" | "random"> {
  readonly log: Pick<Platform["log"], "info" | "warn"> | undefined;
  /** For all but the blocking read. */
  readonly session: RedisCommands;
  readonly key: (...parts: readonly string[]) => string;
  /** Of this incarnation of the node alone: its consumers are named after it, and it skips messages of its own. */
  readonly origin: string;
}
