import { after } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { fencedContract } from "./fenced.ts";

const server = await PostgresServer.shared();
after(() => server.stop());

fencedContract("postgres", async ({ clock, dir }) =>
  openPostgresStore({ url: await server.databaseFor(dir), clock: systemClock, time: clock }),
);
