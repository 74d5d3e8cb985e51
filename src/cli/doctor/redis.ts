/** Reads and judges a Redis, on one connection that changes nothing. Losing all data costs an election; single keys must not go. */

import { bytes } from "../../core/format-figures.ts";
import { systemRandom } from "../../platform/random.ts";
import { readClock } from "./clocks.ts";
import {
  type Answer,
  failed,
  isAtLeast,
  judged,
  type Judgement,
  type Question,
  warning,
} from "./findings.ts";

export interface RedisFacts {
  readonly info: Readonly<Record<string, string>>;
  /** Of CONFIG GET; null where that is not allowed. */
  readonly idleTimeoutSeconds: number | null;
}

const VERSION_MIN = [6, 2] as const;
const FULL = 0.9;

export function judgeRedis({ info, idleTimeoutSeconds: idle }: RedisFacts): readonly Judgement[] {
  const version = info["redis_version"] ?? "?";
  const max = Number(info["maxmemory"] ?? 0);
  const used = Number(info["used_memory"] ?? 0);
  const policy = info["maxmemory_policy"] ?? "noeviction";
  const evicts = max > 0 ? `at ${bytes(max)}` : "as soon as it gets a limit";
  const kept =
    info["aof_enabled"] === "1"
      ? "kept in an append-only file"
      : "not kept over a restart, which costs an election only";
  return judged(
    [
      !isAtLeast(version, VERSION_MIN) &&
        failed(`Redis ${version} is too old: ${VERSION_MIN.join(".")} is needed`, "upgrade the server"),
      info["role"] === "slave" &&
        failed(
          "this Redis is a replica, which takes no writes",
          "give the address of the primary in --redis",
        ),
      policy !== "noeviction" &&
        (max > 0 ? failed : warning)(
          `maxmemory-policy is ${policy}: ${evicts} Redis throws away messages and leases that are in use`,
          "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf",
        ),
      max > 0 &&
        used > max * FULL &&
        warning(
          `${bytes(used)} of ${bytes(max)} memory are in use; when it is full, writes are refused`,
          "raise maxmemory, or find out who fills it: MEMORY STATS, redis-cli --bigkeys",
        ),
      info["loading"] === "1" &&
        warning("Redis is still loading its data and refuses commands", "wait until it is ready"),
      info["rdb_last_bgsave_status"] === "err" &&
        failed(
          "the last save to disk failed, and Redis refuses writes until one succeeds",
          "look into its log; its disk may be full: CONFIG SET stop-writes-on-bgsave-error no lets it go on",
        ),
      idle !== null &&
        idle > 0 &&
        warning(
          `timeout is ${idle} s: connections that wait are cut off, and nodes look dead for a moment`,
          "CONFIG SET timeout 0, and the same in redis.conf",
        ),
    ],
    `Redis ${version}: its memory policy is fine; data is ${kept}`,
  );
}

export async function askRedis({ url, clock, deadlineMs }: Question): Promise<Answer<RedisFacts>> {
  const [{ RedisSession }, { parseRedisUrl }] = await Promise.all([
    import("../../platform/drivers/redis/session.ts"),
    import("../../platform/drivers/server-url.ts"),
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
  const reading = await readClock("Redis", clock, async () => {
    const [seconds, micros] = await session.send<[string, string]>(["TIME"]);
    return Number(seconds) * 1_000 + Number(micros) / 1_000;
  });
  const info = Object.fromEntries(
    [...text.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name, value]) => [name!, value!]),
  );
  const timeout = config?.["timeout"];
  return {
    facts: { info, idleTimeoutSeconds: timeout === undefined ? null : Number(timeout) },
    clock: reading,
  };
}
