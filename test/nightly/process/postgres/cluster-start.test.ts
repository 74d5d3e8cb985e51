/** A cluster that begins beside another version (S107). Many starts at once, and one that is killed half-way: test/contract/store/postgres-shared. */

import assert from "node:assert/strict";
import { it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { systemRandom } from "../../../../src/platform/random.ts";
import { openStore } from "../../../../src/store/open-store.ts";
import { QUICK, TestCluster } from "../../../support/cluster.ts";

it("a node starts beside a newer version whose tables it can work with, and not beside one whose it cannot", async (t) => {
  const cluster = await TestCluster.open(t, { settings: QUICK });
  const parts = { clock: systemClock, random: systemRandom, connections: 2 };
  await (await openStore({ kind: "postgres", url: cluster.url, schema: "baton", ...parts })).close();
  const [row] = await cluster.sql("SELECT count(*)::int AS known FROM baton.migration");
  const known = row!["known"] as number;
  await cluster.sql(`
    INSERT INTO baton.migration (version, compatible_from) VALUES (${known + 1}, 1);
    ALTER TABLE baton.live ADD COLUMN newer text;
    ALTER TABLE baton.node ADD COLUMN newer jsonb`);
  const ada = await cluster.start("ada");
  await ada.does({ task: "work", payload: { ms: 0 } });

  await cluster.sql(`UPDATE baton.migration SET compatible_from = ${known + 1} WHERE version = ${known + 1}`);
  const old = cluster.spawn("bob");
  const { code } = await old.exited;
  assert.equal(code, 78);
  assert.match(old.stderr, /belongs to a newer version of Baton/);
  assert.match(old.stderr, new RegExp(`it needs ${known + 1}, this version knows ${known}`));
});
