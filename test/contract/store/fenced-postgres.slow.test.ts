import { existsSync } from "node:fs";
import { after, before } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { PostgresServer, type SharedPostgres } from "../../support/postgres-server.ts";
import { fencedContract } from "./fenced.ts";

let server: SharedPostgres;
before(async () => {
  server = await PostgresServer.shared();
});
after(() => server.stop());

/** A directory of the contract stands for a database; when it is gone, so is the need for that. */
const databases = new Map<string, string>();

fencedContract("postgres", async ({ clock, dir }) => {
  for (const [old, url] of databases) {
    if (existsSync(old)) continue;
    databases.delete(old);
    await server.giveBack(url);
  }
  const url = await server.createDatabase();
  databases.set(dir, url);
  const store = await openPostgresStore({ url, clock: systemClock, time: clock });
  return store;
});
