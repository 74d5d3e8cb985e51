/**
 * The shared store behind a pooler that gives each transaction another session: what is done in transactions, in pairs of
 * statements and by many at a time. The rest of the contract passes as well, and has nothing to do with sessions.
 */

import { existsSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { noPgBouncer, PgBouncer } from "../../support/pgbouncer.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { type OpenStore, StoreWorld } from "../../support/store-world.ts";
import { SUBJECTS } from "./contract.ts";

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

  /** A directory of the contract stands for a database; when it is gone, so is the need for that. */
  const databases = new Map<string, string>();
  const databaseFor = async (dir: string): Promise<string> => {
    for (const [old, url] of databases) {
      if (existsSync(old)) continue;
      databases.delete(old);
      await server.giveBack(url);
    }
    const url = databases.get(dir) ?? (await server.createDatabase());
    databases.set(dir, url);
    return pooler.through(url);
  };
  const open: OpenStore = async ({ clock, dir }) => {
    const store = await openPostgresStore({ url: await databaseFor(dir), clock: systemClock, time: clock });
    return store;
  };

  for (const subject of ["claim", "settle", "recover", "firing", "fenced writes"]) {
    void describe(subject, () => {
      for (const [sentence, proof] of Object.entries(SUBJECTS[subject]!)) {
        void test(sentence, () => StoreWorld.with(open, proof));
      }
    });
  }
});
