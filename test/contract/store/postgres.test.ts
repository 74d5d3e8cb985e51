import { systemClock } from "../../../src/platform/clock.ts";
import { poolerCheck, type PoolerCheck } from "../../../src/platform/drivers/postgres/pooler-check.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { storeContract } from "./contract.ts";
import { server } from "./postgres-world.ts";

/** By database: looking for a pooler takes two connections, as many as all the rest of a start. */
const poolers = new Map<string, PoolerCheck>();

storeContract(
  "postgres",
  async ({ clock, dir }) => {
    const reached = { url: await server.databaseFor(dir), clock: systemClock };
    const pooler = poolers.get(reached.url) ?? poolerCheck(reached);
    poolers.set(reached.url, pooler);
    return openPostgresStore({ ...reached, time: clock, pooler });
  },
  { reopens: true, owns: true },
);
