import assert from "node:assert/strict";
import { after, beforeEach, describe, test } from "node:test";
import { openChannels } from "../../../src/channels/open-channels.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { channelsContract } from "./contract.ts";
import { migrated, PostgresWorld } from "./postgres-world.ts";
import { servedChannels } from "./served-world.ts";
import { message } from "./world.ts";

const world = await PostgresWorld.open();
after(() => world.close());

channelsContract("postgres", async () => {
  await world.clear();
  const [here, there] = [world.channels(), world.channels()];
  await Promise.all([here.start(), there.start()]);
  return { here, there };
});

describe("postgres channels", () => {
  beforeEach(() => world.clear());

  servedChannels(
    "postgres",
    () => world.channels(),
    async () => {
      // The names of channels are cut at 63 bytes by nobody: the last schema is as long as one may be.
      const clusters = [];
      for (const schema of ["baton", "other", `long_${"x".repeat(58)}`]) {
        await migrated(world.url, schema);
        clusters.push({ here: await world.started({ schema }), there: await world.started({ schema }) });
      }
      return clusters;
    },
  );

  test("a node that uses no queues has two connections, one that does has three", async () => {
    const connections = async (): Promise<number> => {
      const rows = await world.query(
        "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'counted'",
      );
      return Number(rows[0]!["n"]);
    };
    const channels = await world.started({ applicationName: "counted" });
    await channels.publish("t", [message(1)]);
    assert.equal(await connections(), 2);
    await channels.send("q", [message(1)]);
    channels.consume("q", async () => {});
    channels.consume("p", async () => {});
    assert.equal(await connections(), 3);
    await channels.stop();
    assert.equal(await connections(), 0);
  });

  test("a database that cannot be reached, or has no tables, fails the start and leaves nothing open", async () => {
    const unreachable = await openChannels({
      kind: "postgres",
      url: "postgres://postgres@127.0.0.1:1/none",
      clock: systemClock,
      random: systemRandom,
    });
    await assert.rejects(unreachable.start(), { code: "STORE_UNAVAILABLE" });
    const empty = world.channels({ schema: "nobody_made_it", applicationName: "empty" });
    await assert.rejects(empty.start(), /does not exist/);
    const left = await world.query(
      "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'empty'",
    );
    assert.equal(left.length, 0);
  });
});
