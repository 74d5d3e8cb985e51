/** A process that makes the tables of a schema and ends: for tests that kill it before it has. */

import { systemClock } from "../../src/platform/clock.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { openStore } from "../../src/store/open-store.ts";

const [url, schema] = process.argv.slice(2);
const parts = { clock: systemClock, random: systemRandom, connections: 2 };
const store = await openStore({ kind: "postgres", url: url!, schema: schema!, ...parts });
await store.close();
