/** Transactions because of log lines and calls of progress, with Redis beside without: those of silent jobs are taken off. */

import { RedisServer } from "../../test/support/redis-server.ts";
import { ours as openOurs } from "../engine.ts";
import { atMost, besideRow, withSides, type Bench, type Scenario } from "../scenario.ts";
import { PostgresCounter } from "../server-counters.ts";

const LINES = 10_000;
const PROGRESS = 1_000;
const SHARE_MAX = 0.1;

export const redisLogs: Scenario = {
  name: "redis-logs",
  about: `transactions while jobs write ${LINES} log lines and report progress ${PROGRESS} times a second`,
  only: "postgres",
  goals: ["postgres"],
  async run(bench) {
    const server = await RedisServer.start();
    try {
      const floor = await perSecond(bench, null);
      const ours = await perSecond(bench, server);
      const figure = `transactions for ${LINES} lines and ${PROGRESS} progress calls a second, with Redis`;
      const more = { beside: "without Redis", goal: atMost(SHARE_MAX) };
      return [besideRow(figure, "", { ours, floor }, more)];
    } finally {
      await server.stop();
    }
  },
};

async function perSecond(bench: Bench, redis: RedisServer | null): Promise<number> {
  const seconds = bench.quick ? 3 : 15;
  const place = await bench.engine.place(redis ? "redis-logs" : "no-redis-logs");
  const settings = redis ? { "redis.url": redis.url() } : {};
  const node = await openOurs(place, { onReset: "keep", settings });
  return withSides({ node }, async () => {
    const silent = { seconds, linesPerSecond: 0, progressPerSecond: 0 };
    const talking = { seconds, linesPerSecond: LINES, progressPerSecond: PROGRESS };
    await node.call("chat", { ...talking, seconds: 1 });
    const postgres = await PostgresCounter.open(place.url!);
    try {
      const base = await postgres.during(() => node.call("chat", silent));
      const all = await postgres.during(() => node.call("chat", talking));
      const what = `${redis ? "with" : "without"} Redis`;
      bench.say(
        `${what}: ${all.toFixed(0)} transactions in ${seconds} s, ${base.toFixed(0)} if the jobs are silent`,
      );
      return Math.max(0, all - base) / seconds;
    } finally {
      await postgres.close();
    }
  });
}
