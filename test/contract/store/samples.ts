import assert from "node:assert/strict";
import { node, type Promises } from "../../support/store-world.ts";
import { column, plain } from "../../support/columns.ts";

const A = { name: node("node-a"), incarnation: "1" };

export const samplePromises: Promises = {
  "samples are told newest first, with their instant and the epoch that wrote them": async (world) => {
    const { samples, terms } = world.store;
    const term = await terms.grant("metrics_aggregator", A);
    const instants: number[] = [];
    for (const text of ["1", "2", "3"]) {
      instants.push(world.clock.now());
      await samples.note(`{"nodes":${text}}`, term);
      await world.clock.advance(1_000);
    }
    assert.deepEqual(plain(await samples.list(2)), [
      { at: instants[2], leaderEpoch: term.epoch, sample: '{"nodes":3}' },
      { at: instants[1], leaderEpoch: term.epoch, sample: '{"nodes":2}' },
    ]);
    assert.equal((await samples.list(100)).length, 3);
  },

  "samples older than their time are removed": async (world) => {
    const { samples, terms, purge } = world.store;
    const term = await terms.grant("metrics_aggregator", A);
    for (let n = 0; n < 5; n++) {
      await samples.note(String(n), term);
      await world.clock.advance(1_000);
    }
    assert.equal(await purge({ of: "samples", ageMs: 2_500 }, term), 3);
    assert.deepEqual(column(await samples.list(10), "sample"), ["4", "3"]);
  },
};
