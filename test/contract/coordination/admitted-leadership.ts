/** What leadership must keep on every server beside the store: several nodes, stopped processes, a store that is away. */

import assert from "node:assert/strict";
import type { LeaderLocks } from "../../../src/leadership/coordination.ts";
import type { ElectorSettings } from "../../../src/leadership/elector.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import type { TermStore } from "../../../src/store/store.ts";
import { leads, standsBy, type AdmittedElection } from "../../support/lock-admitted-election.ts";
import { candidate, granted } from "../../support/lock-candidates.ts";
import type { PrefixedCluster } from "../../support/lock-cluster.ts";
import { HolderProcess } from "../../support/lock-process.ts";
import { MemoryTerms } from "../../support/lock-terms.ts";
import { ROLE } from "../../support/lock-world.ts";
import { prove, type Promises } from "../promises.ts";
import { raceOn } from "./race.ts";

interface Reachable {
  url(): string;
}

export interface AdmittedWorld<Cluster extends PrefixedCluster<Reachable, LeaderLocks>> {
  readonly kind: "etcd" | "redis";
  readonly cluster: (terms?: TermStore) => Cluster;
  readonly election: () => Promise<AdmittedElection<Cluster>>;
  /** How epochs grow here. */
  readonly follows: (next: number, epoch: number) => void;
  /** Lets hand-moved time pass for the server too. */
  readonly passing: (cluster: Cluster, time: ManualClock) => (ms: number) => Promise<void>;
  readonly deleteLeader: (cluster: Cluster) => Promise<unknown>;
  /** Nodes on one server that are strangers to each other; none of them has ever led. */
  readonly strangers: (clusters: AsyncDisposableStack) => Promise<readonly LeaderLocks[]>;
}

/** A standby that only polled would take seconds. */
export const ELECTION: ElectorSettings = {
  leaseMs: 30_000,
  renewMs: 10_000,
  marginMs: 7_500,
  retryMs: 10_000,
};
export const SHORT: ElectorSettings = { leaseMs: 900, renewMs: 200, marginMs: 200, retryMs: 100 };
export const TTL_MS = 60_000;

export function holderOf<Cluster extends PrefixedCluster<Reachable, LeaderLocks>>(
  kind: "etcd" | "redis",
  { cluster, storeAt: store }: AdmittedElection<Cluster>,
  name: string,
  election: ElectorSettings,
): HolderProcess {
  const beside = { kind, url: cluster.server.url(), prefix: cluster.prefix };
  return new HolderProcess({ beside, store, name, election });
}

class AwayTerms extends MemoryTerms {
  away = false;
  override async admit(term: Term): Promise<boolean> {
    if (this.away) throw new Error("the store is away");
    return super.admit(term);
  }
}

/** The leader's process is struck: the standby leads when the lease is over, and the old term writes nothing. Answers how long it took. */
export async function replaced<Cluster extends PrefixedCluster<Reachable, LeaderLocks>>(
  { kind, election: open, follows }: Pick<AdmittedWorld<Cluster>, "kind" | "election" | "follows">,
  signal: "SIGKILL" | "SIGSTOP",
): Promise<number> {
  await using election = await open();
  await using holder = holderOf(kind, election, "struck", SHORT);
  const epoch = (await holder.leads())!;
  const old = (await election.store.terms.read(ROLE))!;
  assert.equal(old.epoch, epoch);
  await using bob = await election.stander("bob", SHORT);
  await standsBy(bob);
  const startedAt = systemClock.monotonic();
  holder.signal(signal);
  const term = await leads(bob);
  const tookMs = systemClock.monotonic() - startedAt;
  assert.ok(tookMs < SHORT.leaseMs + 1_000, `took ${tookMs} ms`);
  follows(term.epoch, epoch);
  assert.equal(await election.takes(old), false);
  assert.equal(await election.takes(term), true);
  if (signal === "SIGKILL") return tookMs;
  holder.signal("SIGCONT");
  assert.equal(await holder.leads(), null, "awake again it says that its term is over");
  assert.equal(await election.takes(old), false);
  await systemClock.sleep(2 * SHORT.leaseMs);
  assert.equal(bob.elector.held()?.epoch, term.epoch, "the new term goes on");
  return tookMs;
}

function promises<Cluster extends PrefixedCluster<Reachable, LeaderLocks>>(): Promises<
  AdmittedWorld<Cluster>
> {
  return {
    "a release lets the standby lead at once, at a lease of 30 s": async (world) => {
      await using election = await world.election();
      await using ada = await election.stander("ada", ELECTION);
      await leads(ada);
      await using bob = await election.stander("bob", ELECTION);
      await standsBy(bob);
      const { epoch } = ada.elector.require();
      const startedAt = systemClock.monotonic();
      await ada.elector.stop();
      world.follows((await leads(bob)).epoch, epoch);
      assert.ok(systemClock.monotonic() - startedAt < ELECTION.retryMs / 5);
    },

    "fifty candidates on ten nodes race: one is elected, epochs are unique and grow, however terms end":
      async (world) => {
        await using cluster = world.cluster();
        const time = new ManualClock();
        const pass = world.passing(cluster, time);
        const names = Array.from({ length: 10 }, (_, i) => `node-${i}`);
        const members = await Promise.all(names.map((name) => cluster.start(name, { time })));
        await raceOn(members, { rounds: 12, ttlMs: TTL_MS }, async (round, term) => {
          if (round % 3 === 0) await pass(TTL_MS * 1.1);
          else if (round % 3 === 1) await world.deleteLeader(cluster);
          else await members[round % 10]!.lock(ROLE).release(term);
        });
      },

    "strangers on one server have leaders of their own, and do not hear of each other": async (world) => {
      await using clusters = new AsyncDisposableStack();
      const members = await world.strangers(clusters);
      const [first, ...others] = members.map((member) => member.lock(ROLE));
      const held = await granted(first!, candidate("first"), TTL_MS);
      const terms = await Promise.all(
        others.map((lock, i) => granted(lock, candidate(`other-${i}`), TTL_MS)),
      );
      for (const { epoch } of [held, ...terms]) world.follows(epoch, 0);
      const over = new AbortController();
      let heard = 0;
      for (const lock of others) {
        void (async () => {
          for await (const _ of lock.released(over.signal)) heard += 1;
        })();
      }
      await first!.release(held);
      assert.deepEqual(await Promise.all(others.map((lock) => lock.read())), terms);
      assert.equal(heard, 0, "a release of a stranger was told");
      over.abort();
    },

    "epochs go on above what the store remembers, on a server that has never heard of the cluster": async (
      world,
    ) => {
      const terms = new MemoryTerms();
      const epoch = 1_000_000_041;
      await terms.admit({ role: ROLE, leader: candidate("zoe").name, incarnation: "zoe/1", epoch });
      await using cluster = world.cluster(terms);
      const ada = await cluster.start("ada");
      assert.equal((await granted(ada.lock(ROLE), candidate("ada"), TTL_MS)).epoch, epoch + 1);
    },

    "a term that the store knew nothing of when it was asked first is followed by one above the store's":
      async (world) => {
        const terms = new MemoryTerms();
        await using cluster = world.cluster(terms);
        const lock = (await cluster.start("ada")).lock(ROLE);
        const first = await granted(lock, candidate("ada"), TTL_MS);
        await lock.release(first);
        // As if another server had led the cluster meanwhile.
        const epoch = first.epoch + 1_000_000;
        await terms.admit({ role: ROLE, leader: candidate("zoe").name, incarnation: "zoe/1", epoch });
        assert.equal((await granted(lock, candidate("ada"), TTL_MS)).epoch, epoch + 1);
      },

    "while the store does not answer nobody is granted a term, and nobody is kept out for it": async (
      world,
    ) => {
      const terms = new AwayTerms();
      await using cluster = world.cluster(terms);
      const ada = await cluster.start("ada");
      const bob = await cluster.start("bob");
      terms.away = true;
      await assert.rejects(ada.lock(ROLE).acquire(candidate("ada"), TTL_MS), /the store is away/);
      assert.equal(await ada.lock(ROLE).read(), null);
      terms.away = false;
      // The first epoch was given to nobody.
      world.follows((await granted(bob.lock(ROLE), candidate("bob"), TTL_MS)).epoch, 1);
    },
  };
}

export function admittedLeadership<Cluster extends PrefixedCluster<Reachable, LeaderLocks>>(
  name: string,
  world: AdmittedWorld<Cluster>,
): void {
  prove(`leadership on ${name}, beside the store`, promises<Cluster>(), (proof) => proof(world));
}
