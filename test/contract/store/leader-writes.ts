/** What only a leader may do. Under any other term than the newest it is refused, and nothing is changed. */

import assert from "node:assert/strict";
import { DEFAULT_BUDGETS } from "../../../src/core/jobs/job.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import type { Abandoned, Store } from "../../../src/store/store.ts";
import { HOUR_MS, type Promises, type StoreWorld } from "../../support/store-world.ts";
import { strangers } from "./fenced-writes.ts";

type LeaderWrite = (store: Store, fence: Term) => Promise<unknown>;

const AGENT = { name: "a", capabilities: [], version: null, labels: "{}", running: 0 };
const RETENTION = { completedMs: 1, failedMs: 1, cancelledMs: 1 };

const recovery =
  (which: Abandoned): LeaderWrite =>
  ({ jobs }, fence) =>
    jobs.recover(which, DEFAULT_BUDGETS, fence);

const purge =
  (what: Parameters<Store["purge"]>[0]): LeaderWrite =>
  (store, fence) =>
    store.purge(what, fence);

const WRITES: Readonly<Record<string, LeaderWrite>> = {
  "a recovery of expired leases": recovery({ by: "expiry" }),
  "a recovery of leases that nobody heard of": recovery({ by: "expiry", unheard: true }),
  "a recovery of ended lives": recovery({ by: "incarnations", incarnations: ["1"] }),
  "a recovery of everybody else": recovery({ by: "everybody", except: "2" }),
  "a recovery of holders": recovery({ by: "holders", names: ["node-a"] }),
  "a recovery of overdue runs": recovery({ by: "overdue", graceMs: 1 }),
  "a purge of jobs": purge({ of: "jobs", retention: RETENTION, limit: 10 }),
  "a purge of the journal": purge({ of: "journal", ageMs: 0, limit: 10 }),
  "a purge of samples": purge({ of: "samples", ageMs: 0 }),
  "a purge of agents": purge({ of: "agents", ageMs: 0 }),
  "a sample": ({ samples }, fence) => samples.note('{"n":2}', fence),
  "word of an agent": ({ agents }, fence) => agents.seen([{ ...AGENT, running: 9 }], fence),
  "a removal of an agent": ({ agents }, fence) => agents.remove(AGENT.name, fence),
};

async function everything({ store }: StoreWorld): Promise<unknown> {
  const { jobs } = await store.jobs.list({ limit: 10 });
  return [
    jobs,
    await store.agents.list(true),
    await store.samples.list(10),
    await store.journal.list({ limit: 10 }),
  ];
}

const refusedToOthers =
  (write: LeaderWrite) =>
  async (world: StoreWorld): Promise<void> => {
    const { store } = world;
    await world.finish(await world.running());
    await world.running({ timeoutMs: 1 });
    const term = await world.term();
    await store.agents.seen([AGENT], term);
    await store.samples.note("{}", term);
    const entry = {
      kind: "audit",
      node: "node-a",
      actor: null,
      subject: null,
      detail: {},
      agoMs: 0,
    } as const;
    await store.journal.append([entry]);
    await world.clock.advance(HOUR_MS);
    const others = await strangers(world);
    const before = await everything(world);
    for (const fence of others) await assert.rejects(write(store, fence), { code: "STALE_EPOCH" });
    assert.deepEqual(await everything(world), before);
    await write(store, await world.term());
    assert.notDeepEqual(await everything(world), before, "under the newest term it is done");
  };

export const leaderWritePromises: Promises = Object.fromEntries(
  Object.entries(WRITES).map(([what, write]) => [
    `for another leader there is no ${what.replace(/^a /, "")}`,
    refusedToOthers(write),
  ]),
);
