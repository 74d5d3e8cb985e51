/** Gathers facts about a Redis server, on one connection that changes nothing. */

import type { Clock } from "../../platform/clock.ts";
import { RedisSession } from "../../platform/drivers/redis/session.ts";
import { parseRedisUrl } from "../../platform/drivers/redis/url.ts";
import { systemRandom } from "../../platform/random.ts";
import { sampleClock } from "./clock-samples.ts";
import type { ClockReading } from "./judge-clocks.ts";
import { readingOf } from "./judge-clocks.ts";
import type { RedisFacts } from "./judge-redis.ts";

export interface RedisQuestion {
  readonly url: string;
  readonly clock: Clock;
  readonly deadlineMs: number;
}

export interface RedisAnswer {
  readonly facts: RedisFacts;
  readonly clock: ClockReading | null;
}

export async function askRedis({ url, clock, deadlineMs }: RedisQuestion): Promise<RedisAnswer> {
  await using session = new RedisSession({
    address: parseRedisUrl(url),
    clock,
    random: systemRandom,
    name: "baton-doctor",
    connectMs: deadlineMs,
    commandMs: deadlineMs,
  });
  await session.start();
  const text = await session.send<string>(["INFO"]);
  // Some providers do not allow it, which is no finding.
  const config = await session.send<Record<string, string>>(["CONFIG", "GET", "timeout"]).catch(() => null);
  const samples = await sampleClock(clock, async () => {
    const [seconds, micros] = await session.send<[string, string]>(["TIME"]);
    return Number(seconds) * 1_000 + Number(micros) / 1_000;
  });
  const info = Object.fromEntries(
    [...text.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name, value]) => [name!, value!]),
  );
  const timeout = config?.["timeout"];
  return {
    facts: { info, idleTimeoutSeconds: timeout === undefined ? null : Number(timeout) },
    clock: readingOf("Redis", samples),
  };
}
