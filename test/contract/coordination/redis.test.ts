import { after } from "node:test";
import { openRedisLock } from "../../support/lock-redis.ts";
import { RedisServer } from "../../support/redis-server.ts";
import { leaseLockContract } from "./contract.ts";

const server = await RedisServer.start();
after(() => server.stop());

/** Each is fifty candidates, or 25 calls: a few seconds in all. */
const ROUNDS = 30;

leaseLockContract("redis", () => openRedisLock(server, ROUNDS));
