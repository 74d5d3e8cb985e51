/**
 * npm run proof:controllers -- [--minutes N] [--seed N]
 *
 * Two node-controllers (`baton controller`: supervisor, controller and moonlighting agent), two agents and one in Python on one
 * PostgreSQL, under a steady load, while any of their processes is killed with -9 or stopped for longer than a lease, every few
 * seconds. Was a job lost, a result accepted twice, a stale write accepted, a process left behind? Exits with 1 if so.
 */

import { parseArgs } from "node:util";
import { proveControllers } from "./controllers/proof.ts";
import { inProof } from "./scope.ts";

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "60" }, seed: { type: "string", default: "1" } },
});
const minutes = Number(values.minutes);
if (!(minutes > 0)) throw new Error("--minutes must be a number above 0");

await inProof((scope, say) =>
  proveControllers(scope, {
    minutes,
    seed: Number(values.seed),
    say,
    progressMs: process.stderr.isTTY ? 10_000 : 60_000,
  }),
);
