/** Dead rows of the hot tables, and the session that keeps them, as real PostgreSQL reports them. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { server, withSession } from "./postgres-world.ts";

void describe("dead rows of the postgres store", () => {
  for (const schema of ["baton", "jobs"]) {
    void test(`the session that holds the oldest snapshot is named while it is open, in schema ${schema}`, async () => {
      const url = await server.createDatabase();
      await using store = await openPostgresStore({ url, schema, clock: systemClock });
      await withSession(
        url,
        async (report) => {
          const reading = async () => store.deadRows!();
          assert.ok(!(await reading()).oldestSnapshot?.holder.includes("monthly report"));
          await report.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
          const { rows } = await report.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
          const { tables, oldestSnapshot } = await reading();
          assert.match(
            oldestSnapshot!.holder,
            /^session \d+ of user .* \(monthly report, idle in transaction\)$/,
          );
          assert.equal(oldestSnapshot!.remedy, `SELECT pg_terminate_backend(${rows[0]!.pid})`);
          assert.ok(oldestSnapshot!.ageMs >= 0);
          assert.ok(tables.some(({ name, bytes }) => name === "live" && bytes > 0));
          await report.query("ROLLBACK");
          assert.ok(!(await reading()).oldestSnapshot?.holder.includes("monthly report"));
        },
        "monthly report",
      );
    });
  }

  void test("a transaction that has written holds dead rows too, without a snapshot", async () => {
    const url = await server.createDatabase();
    await using store = await openPostgresStore({ url, clock: systemClock });
    await withSession(
      url,
      async (writer) => {
        await writer.query("BEGIN; CREATE TABLE imported (n int)");
        assert.match((await store.deadRows!()).oldestSnapshot!.holder, /import, idle in transaction/);
      },
      "import",
    );
  });
});
