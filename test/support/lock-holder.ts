/**
 * A leader in a process of its own, for tests that kill or stop one. Tells in lines of JSON what happens to it.
 * With `transaction` it takes the term's row as the store's leader writes do, and commits when it is told to.
 */

import { stdin, stdout } from "node:process";
import { createInterface } from "node:readline";
import { Client } from "pg";
import { Elector, type ElectorSettings } from "../../src/leadership/elector.ts";
import { PostgresCoordination } from "../../src/leadership/postgres/coordination.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { applicationName } from "../../src/platform/drivers/postgres/session.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { candidate, OWN_INFO } from "./lock-candidates.ts";
import { ROLE } from "./lock-world.ts";

export interface HolderOptions {
  readonly url: string;
  readonly schema: string;
  readonly name: string;
  readonly election: ElectorSettings;
  readonly transaction: boolean;
}

export type HolderNews =
  | { readonly leads: number | null }
  | { readonly inTransaction: true }
  | { readonly commit: "done" | "refused" };

const { url, schema, name, election, transaction } = JSON.parse(process.argv[2]!) as HolderOptions;
const tell = (news: HolderNews): void => void stdout.write(`${JSON.stringify(news)}\n`);

const identity = candidate(name, systemRandom.uuid());
const shared = { clock: systemClock, random: systemRandom };
const coordination = new PostgresCoordination({ url, schema, identity, info: () => OWN_INFO, ...shared });
await coordination.start();
const elector = new Elector({
  lock: coordination.lock(ROLE),
  identity,
  role: ROLE,
  settings: election,
  ...shared,
});
await elector.start();

const client = new Client({ connectionString: url, application_name: applicationName(identity) });
client.on("error", () => {});
createInterface(stdin).on("line", () => {
  client.query("COMMIT").then(
    () => tell({ commit: "done" }),
    () => tell({ commit: "refused" }),
  );
});
if (transaction) await client.connect();

for await (const term of elector.changes(new AbortController().signal)) {
  tell({ leads: term?.epoch ?? null });
  if (!term || !transaction) continue;
  await client.query("BEGIN");
  await client.query(`SELECT 1 FROM ${schema}.term WHERE role = $1 AND epoch = $2 FOR SHARE`, [
    ROLE,
    term.epoch,
  ]);
  await client.query(`INSERT INTO ${schema}.queue (name, paused) VALUES ('written-by-${term.epoch}', false)`);
  tell({ inTransaction: true });
}
