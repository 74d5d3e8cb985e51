/**
 * A leader on a server beside the store, in a process of its own, for tests that kill or stop one. Tells in lines of JSON which epoch
 * it leads.
 */

import { stdout } from "node:process";
import { Elector, type ElectorSettings } from "../../src/leadership/elector.ts";
import { openCoordination } from "../../src/leadership/open-coordination.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import { candidate, OWN_INFO } from "./lock-candidates.ts";
import { ROLE } from "./lock-world.ts";

export interface AdmittedHolderOptions {
  readonly at: { readonly kind: "etcd" | "redis"; readonly url: string; readonly prefix: string };
  readonly store: { readonly url: string; readonly schema: string };
  readonly name: string;
  readonly election: ElectorSettings;
}

/** Null when a term has ended. */
export type AdmittedHolderNews = number | null;

const { at, store, name, election } = JSON.parse(process.argv[2]!) as AdmittedHolderOptions;
const identity = candidate(name, systemRandom.uuid());
const shared = { identity, clock: systemClock, random: systemRandom };

const postgres = await openPostgresStore({ ...store, clock: systemClock });
const { terms } = postgres;
const { kind, ...server } = at;
const info = () => OWN_INFO;
const coordination = await openCoordination({ kind, server, terms, info, ...store, ...shared });
await coordination.start();
const elector = new Elector({ lock: coordination.lock(ROLE), role: ROLE, settings: election, ...shared });
await elector.start();

for await (const term of elector.changes(new AbortController().signal)) {
  const news: AdmittedHolderNews = term?.epoch ?? null;
  stdout.write(`${JSON.stringify(news)}\n`);
}
