import { systemClock } from "../../../../src/platform/clock.ts";
import { openPostgresStore } from "../../../../src/store/postgres/store.ts";
import { fencedContract } from "../../../contract/store/fenced.ts";
import { server } from "../../../contract/store/postgres-world.ts";

fencedContract("postgres", async ({ clock, dir }) =>
  openPostgresStore({ url: await server.databaseFor(dir), clock: systemClock, time: clock }),
);
