/**
 * Reads and judges a Redis that is used in addition to the database, on one connection that changes nothing. Losing all
 * its data costs an election; it must not lose single keys.
 */

import { bytes } from "../../core/figures.ts";
import type { Clock } from "../../platform/clock.ts";
import { systemRandom } from "../../platform/random.ts";
import type { ClockReading } from "./clocks.ts";
import { readingOf, sampleClock } from "./clocks.ts";
import type { Judgement } from "./findings.ts";
import { failed, unless, warning } from "./findings.ts";

export interface RedisFacts {
  /** The fields of INFO. */
  readonly info: Readonly<Record<string, string>>;
  /** Of CONFIG GET; null where that is not allowed. */
  readonly idleTimeoutSeconds: number | null;
}

const VERSION_MIN = [6, 2] as const;
const FULL = 0.9;

export function judgeRedis({ info, idleTimeoutSeconds }: RedisFacts): readonly Judgement[] {
  const version = info["redis_version"] ?? "?";
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const problems: Judgement[] = [];
  if (major < VERSION_MIN[0] || (major === VERSION_MIN[0] && minor < VERSION_MIN[1])) {
    problems.push(
      failed(`Redis ${version} is too old: ${VERSION_MIN.join(".")} is needed`, "upgrade the server"),
    );
  }
  if (info["role"] === "slave") {
    problems.push(
      failed("this Redis is a replica, which takes no writes", "give the address of the primary in --redis"),
    );
  }
  problems.push(...memory(info));
  if (info["loading"] === "1") {
    problems.push(warning("Redis is still loading its data and refuses commands", "wait until it is ready"));
  }
  if (info["rdb_last_bgsave_status"] === "err") {
    problems.push(
      failed(
        "the last save to disk failed, and Redis refuses writes until one succeeds",
        "look into its log; its disk may be full: CONFIG SET stop-writes-on-bgsave-error no lets it go on",
      ),
    );
  }
  if (idleTimeoutSeconds !== null && idleTimeoutSeconds > 0) {
    problems.push(
      warning(
        `timeout is ${idleTimeoutSeconds} s: connections that wait are cut off, and nodes look dead for a moment`,
        "CONFIG SET timeout 0, and the same in redis.conf",
      ),
    );
  }
  const kept =
    info["aof_enabled"] === "1"
      ? "kept in an append-only file"
      : "not kept over a restart, which costs an election only";
  return unless(problems, `Redis ${version}: its memory policy is fine; data is ${kept}`);
}

function memory(info: RedisFacts["info"]): Judgement[] {
  const max = Number(info["maxmemory"] ?? 0);
  const used = Number(info["used_memory"] ?? 0);
  const policy = info["maxmemory_policy"] ?? "noeviction";
  const found: Judgement[] = [];
  if (policy !== "noeviction") {
    const say = max > 0 ? failed : warning;
    const when = max > 0 ? `at ${bytes(max)}` : "as soon as it gets a limit";
    found.push(
      say(
        `maxmemory-policy is ${policy}: ${when} Redis throws away messages and leases that are in use`,
        "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf",
      ),
    );
  }
  if (max > 0 && used > max * FULL) {
    found.push(
      warning(
        `${bytes(used)} of ${bytes(max)} memory are in use; when it is full, writes are refused`,
        "raise maxmemory, or find out who fills it: MEMORY STATS, redis-cli --bigkeys",
      ),
    );
  }
  return found;
}

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
  const [{ RedisSession }, { parseRedisUrl }] = await Promise.all([
    import("../../platform/drivers/redis/session.ts"),
    import("../../platform/drivers/redis/url.ts"),
  ]);
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
