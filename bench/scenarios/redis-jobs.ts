/** How many commands and transactions a job costs with Redis, beside the transactions that it costs without. */

import { RedisServer } from "../../test/support/redis-server.ts";
import { ours as openOurs } from "../engine.ts";
import { absolute, withSides, type Bench, type Row, type Scenario } from "../scenario.ts";
import { PostgresCounter, RedisCounter } from "../server-counters.ts";

const CALLERS = 50;
const COMMANDS_MAX = 2;
const TRANSACTIONS_MAX = 0.2;

interface Cost {
  readonly transactions: number;
  readonly commands: number;
  readonly calls: number;
}

export const redisJobs: Scenario = {
  name: "redis-jobs",
  about: `commands and transactions for each job that ${CALLERS} callers of one node submit and another node runs, with Redis`,
  only: "postgres",
  goals: ["postgres"],
  async run(bench) {
    const server = await RedisServer.start();
    try {
      const alone = await cost(bench, {});
      const redis = { "redis.url": server.url() };
      const pulled = await cost(bench, redis, server);
      const pushed = await cost(bench, { ...redis, "dispatch.mode": "push" }, server);
      return [...rows("busy", pulled, alone), ...rows("busy, pushed", pushed, alone)];
    } finally {
      await server.stop();
    }
  },
};

function rows(how: string, { commands, calls, transactions }: Cost, alone: Cost): Row[] {
  return [
    absolute(`Redis commands for each job, ${how}`, "1/job", commands, COMMANDS_MAX),
    absolute("  called by scripts, in addition", "1/job", calls, null),
    {
      ...absolute(`transactions for each job with Redis, ${how}`, "1/job", transactions, TRANSACTIONS_MAX),
      floor: alone.transactions,
      beside: "without Redis",
      ratio: transactions / alone.transactions,
    },
  ];
}

async function cost(
  bench: Bench,
  settings: Readonly<Record<string, string>>,
  redis: RedisServer | null = null,
): Promise<Cost> {
  const place = await bench.engine.place("redis-jobs");
  const from = await openOurs(place, { name: "from", works: false, onReset: "keep", settings });
  const to = await openOurs(place, { name: "to", onReset: "keep", settings });
  return withSides({ from, to }, async () => {
    await to.call("serve");
    await from.call("submitFor", { callers: CALLERS, ms: 500 });
    await to.call("finish");
    const postgres = await PostgresCounter.open(place.url!);
    const commands = redis && (await RedisCounter.open(redis.port));
    try {
      let [jobs, sent, called] = [0, 0, 0];
      const transactions = await postgres.during(async () => {
        [sent, called] = [commands?.sent ?? 0, commands?.called ?? 0];
        ({ jobs } = await from.call("submitFor", { callers: CALLERS, ms: bench.quick ? 1_000 : 5_000 }));
        await to.call("finish");
        [sent, called] = [(commands?.sent ?? 0) - sent, (commands?.called ?? 0) - called];
      });
      bench.say(`${jobs} jobs: ${transactions.toFixed(0)} transactions`);
      return { transactions: transactions / jobs, commands: sent / jobs, calls: called / jobs };
    } finally {
      commands?.close();
      await postgres.close();
    }
  });
}
