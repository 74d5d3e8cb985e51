/** How long a single job of another node waits when every hint that it is there gets lost. */

import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { ours as openOurs } from "../engine.ts";
import { absolute, withSides, type Scenario } from "../scenario.ts";
import { percentile } from "../statistics.ts";

const MS_MAX = 1_000;
/** So that a look falls at any time between two submits. */
const GAP_MS_MAX = 1_500;

/** Found before the server's own, it keeps all notifications of this database from being sent. */
const DEAF = `
  CREATE SCHEMA deaf;
  CREATE FUNCTION deaf.pg_notify(text, text) RETURNS void LANGUAGE sql AS '';
  DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET search_path = deaf, pg_catalog, public', current_database());
  END $$`;

export const hints: Scenario = {
  name: "hints",
  about: "pick-up of single jobs of another node, on a database that sends no notification",
  only: "postgres",
  goals: ["postgres"],
  async run(bench) {
    const jobs = bench.quick ? 5 : 40;
    const place = await bench.engine.place("deaf");
    const client = new Client({ connectionString: place.url! });
    await client.connect();
    await client.query(DEAF);
    await client.end();
    const from = await openOurs(place, { name: "from", works: false, onReset: "keep" });
    const to = await openOurs(place, { name: "to", onReset: "keep" });
    return withSides({ from, to }, async () => {
      await to.call("collect");
      const waited: number[] = [];
      for (let n = 0; n < jobs; n++) {
        await sleep(Math.random() * GAP_MS_MAX);
        await from.call("submitOne");
        waited.push(...(await to.call("collected", { jobs: 1 })));
      }
      const figure = `a single job noticed without hints, worst of ${jobs}`;
      return [
        absolute(figure, "ms", Math.max(...waited), MS_MAX),
        absolute("  p50", "ms", percentile(waited, 0.5), null),
      ];
    });
  },
};
