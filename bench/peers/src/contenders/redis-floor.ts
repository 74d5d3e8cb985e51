// Redis Streams with a consumer group: XADD, XREADGROUP in batches, XACK and XDEL pipelined.
import { Redis } from "ioredis";
import type { Contender, Context, Entry, Handler, Job, WorkMode } from "../types.ts";
import { sleep } from "../util.ts";

const KEY = "floor:stream";
const GROUP = "g";
const BATCH = 500;

class RedisFloor implements Contender {
  #where: { host: string; port: number };
  #main: Redis;
  #clients: Redis[] = [];
  #stopping = false;
  #loops: Promise<void>[] = [];

  constructor(where: { host: string; port: number }) {
    this.#where = where;
    this.#main = this.#connect();
  }

  #connect(): Redis {
    const client = new Redis({ ...this.#where, maxRetriesPerRequest: null });
    client.on("error", () => {});
    this.#clients.push(client);
    return client;
  }

  async start(): Promise<void> {
    await this.#main.xgroup("CREATE", KEY, GROUP, "0", "MKSTREAM").catch(() => {});
  }

  async reset(): Promise<void> {
    await this.#main.del(KEY, `${KEY}:done`);
    await this.start();
  }

  enqueue(job: Job): Promise<unknown> {
    return this.#main.xadd(KEY, "*", "d", JSON.stringify(job));
  }

  enqueueMany(jobs: Job[]): Promise<unknown> {
    const pipeline = this.#main.pipeline();
    for (const job of jobs) pipeline.xadd(KEY, "*", "d", JSON.stringify(job));
    return pipeline.exec();
  }

  async work(mode: WorkMode, handler: Handler): Promise<void> {
    const recover = mode.startsWith("recover");
    for (let i = 0; i < (recover ? 1 : 2); i++)
      this.#loops.push(this.#run(mode, handler, `${process.pid}-${i}`));
    if (recover) this.#loops.push(this.#reclaim(mode, handler));
  }

  async #run(mode: WorkMode, handler: Handler, name: string): Promise<void> {
    const client = this.#connect();
    const recover = mode.startsWith("recover");
    const idle = mode === "recover-tight" ? 1000 : 30_000;
    while (!this.#stopping) {
      const reply = (await client
        .xreadgroup("GROUP", GROUP, name, "COUNT", recover ? 1 : BATCH, "BLOCK", 1000, "STREAMS", KEY, ">")
        .catch(() => null)) as [string, [string, string[]][]][] | null;
      if (!reply) continue;
      const entries = reply[0]![1];
      const ids = entries.map((e) => e[0]);
      const renew = recover
        ? setInterval(() => void this.#main.xclaim(KEY, GROUP, name, 0, ...ids, "JUSTID"), idle / 3)
        : undefined;
      for (const [, fields] of entries) await handler(JSON.parse(fields[1]!));
      clearInterval(renew);
      const pipeline = this.#main
        .pipeline()
        .xack(KEY, GROUP, ...ids)
        .xdel(KEY, ...ids);
      if (mode === "retain")
        for (const [, fields] of entries) pipeline.xadd(`${KEY}:done`, "*", "d", fields[1]!);
      await pipeline.exec();
    }
  }

  async #reclaim(mode: WorkMode, handler: Handler): Promise<void> {
    const idle = mode === "recover-tight" ? 1000 : 30_000;
    while (!this.#stopping) {
      const [, entries] = (await this.#main
        .xautoclaim(KEY, GROUP, `${process.pid}-r`, idle, "0", "COUNT", 10)
        .catch(() => ["", []])) as [string, [string, string[]][]];
      for (const [id, fields] of entries) {
        await handler(JSON.parse(fields[1]!));
        await this.#main.pipeline().xack(KEY, GROUP, id).xdel(KEY, id).exec();
      }
      await sleep(25);
    }
  }

  unfinished(): Promise<number> {
    return this.#main.xlen(KEY);
  }

  async seedHistory(count: number): Promise<void> {
    await this.#main.eval(
      `for i = 1, ${count} do redis.call('XADD', KEYS[1], '*', 'd', '{"n":' .. i .. ',"t":0,"pad":"${"x".repeat(160)}"}') end`,
      1,
      `${KEY}:done`,
    );
  }

  async storeBytes(): Promise<number> {
    return Number(/used_memory:(\d+)/.exec(await this.#main.info("memory"))![1]);
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.race([Promise.all(this.#loops), sleep(1500)]);
    for (const c of this.#clients) c.disconnect();
  }
}

const recovery = {
  default: "30 s idle",
  measureDefault: false,
  tight: "XAUTOCLAIM min-idle 1 s, renewed every 333 ms, poll 25 ms",
};
const settings = "XADD; bulk pipelined; XREADGROUP COUNT 500, XACK+XDEL pipelined, 2 loops";
export const entries: Entry[] = [
  {
    name: "redis-stream",
    kind: "floor",
    store: "redis-everysec",
    durability: "AOF everysec: up to 1 s lost",
    settings,
    create: (c: Context) => new RedisFloor(c.redis.everysec),
    drainJobs: 100_000,
    keeps: true,
    recovery,
  },
  {
    name: "redis-stream-fsync",
    kind: "floor",
    store: "redis-always",
    durability: "AOF always: fsync before the reply",
    settings,
    create: (c: Context) => new RedisFloor(c.redis.always),
    drainJobs: 90_000,
    keeps: true,
    recovery,
  },
];
