/** A server beside the store that forgets, stands still or is restarted: who leads, and under which epoch the store takes writes. */

import assert from "node:assert/strict";
import type { LeaderLocks } from "../../../src/leadership/coordination.ts";
import type { ElectorSettings } from "../../../src/leadership/elector.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import {
  heldTerm,
  leads,
  newest,
  standsBy,
  type AdmittedElection,
} from "../../support/lock-admitted-election.ts";
import { candidate, granted } from "../../support/lock-candidates.ts";
import type { PrefixedCluster } from "../../support/lock-cluster.ts";
import { ROLE } from "../../support/lock-world.ts";
import { prove, type Promises } from "../promises.ts";
import { eventually } from "../../support/wait.ts";

interface Breakable {
  url(): string;
  halt(): Promise<void>;
  relaunch(): Promise<void>;
  pause(): void;
  resume(): void;
  stop(): Promise<void>;
}

export interface FaultyWorld<Server extends Breakable> {
  /** The one that others use as well. */
  readonly server: () => Server;
  /** One whose data outlives it. */
  readonly start: () => Promise<Server>;
  readonly cluster: (server: Server) => PrefixedCluster<Server, LeaderLocks>;
  readonly election: (server: Server) => Promise<AdmittedElection<PrefixedCluster<Server, LeaderLocks>>>;
}

export const ELECTION: ElectorSettings = { leaseMs: 1_500, renewMs: 300, marginMs: 300, retryMs: 150 };
/** Commands are given up after a second, the shortest there is. */
export const QUICK = { heartbeatMs: 50, deadAfterMs: 2_000, forgetAfterMs: 3_600_000 };

export async function withServer<Server extends { stop(): Promise<void> }>(
  start: () => Promise<Server>,
  proof: (server: Server) => Promise<void>,
): Promise<void> {
  const own = await start();
  try {
    await proof(own);
  } finally {
    await own.stop();
  }
}

/** Two nodes, one of which leads, and a fault; afterwards somebody leads under a higher epoch, and the old term may not write. */
export async function survives<Election extends AdmittedElection<PrefixedCluster<unknown, LeaderLocks>>>(
  opening: Promise<Election>,
  settings: ElectorSettings,
  fault: (election: Election) => Promise<unknown>,
): Promise<void> {
  await using election = await opening;
  await using ada = await election.stander("ada", settings);
  const old = await leads(ada);
  await using bob = await election.stander("bob", settings);
  await standsBy(bob);
  assert.equal(await election.takes(old), true);

  const startedAt = systemClock.monotonic();
  const [endedAt] = await Promise.all([
    eventually("the end of the old term", () => !heldTerm(ada, old) && systemClock.monotonic()),
    fault(election),
  ]);
  assert.ok(endedAt - startedAt < 2_000, "the holder noticed too late");
  const next = await eventually("the next term", () => newest([ada, bob]));
  assert.ok(next.epoch > old.epoch, `epoch ${next.epoch} after ${old.epoch}`);
  assert.equal(await election.takes(old), false, "a stale write was taken");
  assert.equal(await election.takes(next), true);
}

function promises<Server extends Breakable>(): Promises<FaultyWorld<Server>> {
  return {
    "kill -9 and a restart with its data keeps the term": ({ start, election: open }) =>
      withServer(start, async (server) => {
        await using election = await open(server);
        await using ada = await election.stander("ada", { ...ELECTION, leaseMs: 10_000 });
        const term = await leads(ada);
        const lock = ada.coordination.lock(ROLE);
        const { leaseUntil } = (await lock.tenure())!;
        await server.halt();
        await server.relaunch();
        const renewed = await eventually("a renewal", async () => {
          const tenure = await lock.tenure().catch(() => null);
          return tenure && tenure.leaseUntil > leaseUntil && tenure;
        });
        assert.equal(renewed.epoch, term.epoch);
        assert.equal(ada.elector.held()?.epoch, term.epoch);
      }),

    "two nodes on two servers: both may believe, one may write, and the other is told soon": (world) =>
      withServer(world.start, async (other) => {
        await using election = await world.election(world.server());
        await using ada = await election.stander("ada", ELECTION);
        const old = await leads(ada);
        await using bob = await election.stander("bob", ELECTION, { url: other.url() });
        const startedAt = systemClock.monotonic();
        const next = await leads(bob);
        assert.ok(next.epoch > old.epoch);
        assert.equal(await election.takes(old), false);
        assert.equal(await election.takes(next), true);
        await eventually("ada is told", () => !heldTerm(ada, old));
        assert.ok(systemClock.monotonic() - startedAt < ELECTION.leaseMs, "only its own lease told it");
        assert.equal(bob.elector.held()?.epoch, next.epoch);
      }),

    "stopped for two leases: the leader steps down by itself, what it had sent revives nothing, and the next epoch is higher":
      ({ start, election: open }) =>
        withServer(start, async (server) => {
          await using election = await open(server);
          await using ada = await election.stander("ada", ELECTION);
          const old = await leads(ada);
          await using bob = await election.stander("bob", ELECTION);
          await standsBy(bob);
          server.pause();
          const stoppedAt = systemClock.monotonic();
          await eventually("ada steps down", () => ada.elector.held() === null);
          assert.ok(systemClock.monotonic() - stoppedAt < ELECTION.leaseMs);
          await systemClock.sleep(2 * ELECTION.leaseMs - (systemClock.monotonic() - stoppedAt));
          server.resume();
          const next = await eventually("the next term", () => newest([ada, bob]));
          assert.ok(next.epoch > old.epoch);
          assert.equal(await ada.coordination.lock(ROLE).renew(old, 60_000), false);
          assert.equal(await election.takes(old), false);
          assert.equal(await election.takes(next), true);
        }),

    "a pause below the deadline of a renewal costs nothing": async (world) => {
      const server = world.server();
      await using cluster = world.cluster(server);
      const identity = candidate("ada", systemRandom.uuid());
      const lock = (await cluster.start("ada", { identity, settings: QUICK })).lock(ROLE);
      const term = await granted(lock, identity, 60_000);
      server.pause();
      const renewing = lock.renew(term, 60_000);
      await systemClock.sleep(300);
      server.resume();
      assert.equal(await renewing, true);
      assert.equal(await lock.renew(term, 60_000), true);
    },
  };
}

export function admittedFaults<Server extends Breakable>(name: string, world: FaultyWorld<Server>): void {
  prove(`${name} that fails beside the store`, promises<Server>(), (proof) => proof(world));
}
