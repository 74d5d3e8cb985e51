/**
 * npm run bench:failover -- [postgres] [peers] [--kills N] [--pauses N] [--stops N] [--json FILE]
 *
 * What it takes until work goes on when a node of a cluster is killed, paused or told to stop; all at the defaults.
 */

import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { eventTable, type Failover, type FailoverEvent } from "./failover-event.ts";
import { peersFailover } from "./failover-peers.ts";
import { postgresFailover } from "./failover-postgres.ts";
import { withScope } from "./run-scope.ts";

const FABRICS: Readonly<Record<string, Failover>> = { postgres: postgresFailover, peers: peersFailover };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kills: { type: "string", default: "50" },
    pauses: { type: "string", default: "5" },
    stops: { type: "string", default: "10" },
    json: { type: "string" },
  },
});
const unknown = positionals.find((name) => !(name in FABRICS));
if (unknown !== undefined) {
  process.stderr.write(`there is no fabric ${unknown}; there are ${Object.keys(FABRICS).join(", ")}\n`);
  process.exit(2);
}
const count = (text: string): number => Math.max(0, Math.floor(Number(text)) || 0);

await withScope(async (scope) => {
  const events: FailoverEvent[] = [];
  for (const name of positionals.length > 0 ? positionals : Object.keys(FABRICS)) {
    const options = {
      kills: count(values.kills),
      stops: count(values.stops),
      pauses: count(values.pauses),
      scope,
      say: (text: string) => void process.stderr.write(`${text}\n`),
    };
    events.push(...(await FABRICS[name]!(options)));
  }
  console.log(eventTable(events));
  if (values.json) writeFileSync(values.json, `${JSON.stringify(events, null, 2)}\n`);
});
process.exit(0);
