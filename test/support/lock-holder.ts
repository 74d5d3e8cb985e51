/**
 * A leader in a process of its own, for tests that kill or stop one. Tells in lines of JSON what happens to it.
 * With `transaction` it takes the term's row as the store's leader writes do, and commits when it is told to.
 */

import { stdin, stdout } from "node:process";
import { createInterface } from "node:readline";
import { Client } from "pg";
import type { ElectorSettings } from "../../src/leadership/elector.ts";
import { openCoordination } from "../../src/leadership/open-coordination.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { applicationName } from "../../src/platform/drivers/postgres/session.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import { candidate, OWN_INFO } from "./lock-candidates.ts";
import { electorOf } from "./lock-cluster.ts";
import { ROLE } from "./lock-world.ts";

export interface HolderOptions {
  readonly name: string;
  readonly election: ElectorSettings;
  readonly store: { readonly url: string; readonly schema: string };
  /** The server that elects beside the store, if one does. */
  readonly beside?: { readonly kind: "etcd" | "redis"; readonly url: string; readonly prefix: string };
  readonly transaction?: boolean;
}

export type HolderNews =
  | { readonly leads: number | null }
  | { readonly inTransaction: true }
  | { readonly commit: "done" | "refused" };

const { name, election, store, beside, transaction = false } = JSON.parse(process.argv[2]!) as HolderOptions;
const tell = (news: HolderNews): void => void stdout.write(`${JSON.stringify(news)}\n`);

const identity = candidate(name, systemRandom.uuid());
const node = { ...store, identity, info: () => OWN_INFO, clock: systemClock, random: systemRandom };
const coordination = await (beside
  ? openCoordination({
      kind: beside.kind,
      server: beside,
      terms: (await openPostgresStore(node)).terms,
      ...node,
    })
  : openCoordination({ kind: "postgres", ...node }));
await coordination.start();
const elector = electorOf(identity, coordination, election);
await elector.start();

const client = new Client({ connectionString: store.url, application_name: applicationName(identity) });
client.on("error", () => {});
createInterface(stdin).on("line", () => {
  client.query("COMMIT").then(
    () => tell({ commit: "done" }),
    () => tell({ commit: "refused" }),
  );
});
if (transaction) await client.connect();

const { schema } = store;
for await (const term of elector.changes(new AbortController().signal)) {
  tell({ leads: term?.epoch ?? null });
  if (!term || !transaction) continue;
  await client.query("BEGIN");
  const held = `SELECT 1 FROM ${schema}.term WHERE role = $1 AND epoch = $2 FOR SHARE`;
  await client.query(held, [ROLE, term.epoch]);
  await client.query(`INSERT INTO ${schema}.queue (name, paused) VALUES ('written-by-${term.epoch}', false)`);
  tell({ inTransaction: true });
}
