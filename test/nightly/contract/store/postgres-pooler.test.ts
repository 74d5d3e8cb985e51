/**
 * The shared store behind a pooler that gives each transaction another session: what is done in transactions, in pairs of
 * statements and by many at a time. The rest of the contract passes as well, and has nothing to do with sessions.
 */

import { after, before, describe } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { openPostgresStore } from "../../../../src/store/postgres/store.ts";
import { noPgBouncer, PgBouncer } from "../../../support/pgbouncer.ts";
import { PostgresServer } from "../../../support/postgres-server.ts";
import type { OpenStore } from "../../../support/store-world.ts";
import { proveOnStore, SUBJECTS } from "../../../contract/store/contract.ts";

void describe("the postgres store behind PgBouncer", { skip: noPgBouncer }, () => {
  let server: PostgresServer;
  let pooler: PgBouncer;
  before(async () => {
    server = await PostgresServer.start();
    pooler = await PgBouncer.start(server.url("postgres"), { mode: "transaction", sessions: 4 });
  });
  after(async () => {
    await pooler[Symbol.asyncDispose]();
    await server.stop();
  });

  const open: OpenStore = async ({ clock, dir }) => {
    const url = pooler.through(await server.databaseFor(dir));
    return openPostgresStore({ url, clock: systemClock, time: clock });
  };

  const subjects = ["claim", "settle", "recover", "firing", "fenced writes"];
  proveOnStore("through it", open, Object.fromEntries(subjects.map((each) => [each, SUBJECTS[each]!])));
});
