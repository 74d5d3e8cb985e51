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

storeContract(
  "postgres",
  async ({ clock, dir }) =>
    openPostgresStore({ url: await server.databaseFor(dir), clock: systemClock, time: clock }),
  { reopens: true, owns: true },
);
