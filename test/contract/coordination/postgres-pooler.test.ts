/** Behind a pooler that works by transactions, and on a server that takes no writes. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { hasCode } from "../../../src/core/errors.ts";
import { candidate, granted } from "../../support/lock-candidates.ts";
import { TransactionPooler, type PoolerOptions } from "../../support/lock-pooler.ts";
import { openPostgresLock, PostgresCluster } from "../../support/lock-postgres.ts";
import { ROLE } from "../../support/lock-world.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { leaseLockContract } from "./contract.ts";

let server: PostgresServer;
let pooler: TransactionPooler;
before(async () => {
  server = await PostgresServer.start();
  pooler = await TransactionPooler.start(server.url("postgres"), { sessions: 3, order: "round" });
});
after(async () => {
  await pooler[Symbol.asyncDispose]();
  await server.stop();
});

leaseLockContract("postgres behind a pooler", () => openPostgresLock(server, 15, pooler.url));

const advisoryLocks = (cluster: PostgresCluster): Promise<unknown[]> =>
  cluster.sql("SELECT pid FROM pg_locks WHERE locktype = 'advisory'");

void describe("coordination behind a pooler", () => {
  for (const options of [
    { sessions: 1, order: "round" },
    { sessions: 2, order: "round" },
    { sessions: 5, order: "round" },
    { sessions: 2, order: "last used" },
    { sessions: 5, order: "last used" },
  ] satisfies PoolerOptions[]) {
    const pool =
      options.sessions === 1 ? "the only session" : `${options.sessions} sessions, ${options.order}`;
    void test(`a pooler with ${pool} is noticed at the start and told of, and no lock is used`, async () => {
      await using cluster = await PostgresCluster.open(server);
      await using between = await TransactionPooler.start(cluster.url, options);
      const member = await cluster.start("ada", { url: between.url });
      assert.match(member.notes().join(), /pooler.*direct URL/);
      await granted(member.lock(ROLE), candidate("ada"), 5_000);
      assert.deepEqual(await advisoryLocks(cluster), []);
      assert.deepEqual(
        member.membership.nodes().map(({ name, alive }) => ({ name, alive })),
        [{ name: "ada", alive: true }],
      );
      await member.stop();
    });
  }

  void test("a direct connection is not taken for a pooler", async () => {
    await using cluster = await PostgresCluster.open(server);
    const member = await cluster.start("ada");
    assert.deepEqual(member.notes(), []);
    assert.equal((await advisoryLocks(cluster)).length, 1, "the lock of its life");
  });
});

void test("a server in recovery is refused at the start, with the reason", async () => {
  const standby = await PostgresServer.start();
  try {
    const cluster = await PostgresCluster.open(standby);
    const [setting] = await standby.query("SHOW data_directory");
    await standby.halt("fast");
    writeFileSync(join(setting!["data_directory"] as string, "standby.signal"), "");
    await standby.relaunch();
    await assert.rejects(cluster.start("ada"), (error: unknown) => {
      assert.ok(hasCode(error, "BAD_CONFIG"));
      assert.equal(error.details.field, "store");
      assert.match(error.message, /in recovery.*primary/);
      return true;
    });
  } finally {
    await standby.stop();
  }
});
