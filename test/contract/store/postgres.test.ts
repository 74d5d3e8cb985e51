import { existsSync } from "node:fs";
import { after, before } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { PostgresServer, type SharedPostgres } from "../../support/postgres-server.ts";
import { storeContract } from "./contract.ts";

let server: SharedPostgres;
before(async () => {
  server = await PostgresServer.shared();
});
after(() => server.stop());

/** A directory of the contract stands for a database; when it is gone, so is the need for that. */
const databases = new Map<string, string>();

async function databaseFor(dir: string): Promise<string> {
  for (const [old, url] of databases) {
    if (existsSync(old)) continue;
    databases.delete(old);
    await server.giveBack(url);
  }
  const url = databases.get(dir) ?? (await server.createDatabase());
  databases.set(dir, url);
  return url;
}

storeContract(
  "postgres",
  async ({ clock, dir }) => {
    const url = await databaseFor(dir);
    const store = await openPostgresStore({ url, clock: systemClock, time: clock });
    return store;
  },
  { reopens: true, owns: true },
);
