/** Leader locks on a real etcd. */

import { EtcdLocks } from "../../src/leadership/etcd/locks.ts";
import { ManualClock } from "./manual-clock.ts";
import type { EtcdServer } from "./etcd-server.ts";
import { AdmittedElection } from "./lock-admitted-election.ts";
import { openClusterLock, PrefixedCluster, type GivenOptions } from "./lock-cluster.ts";
import type { LockWorld } from "./lock-world.ts";
import type { SharedPostgres } from "./postgres-server.ts";

export class EtcdCluster extends PrefixedCluster<EtcdServer, EtcdLocks> {
  key(...parts: readonly string[]): string {
    return [this.prefix, ...parts].join("/");
  }

  protected open(given: GivenOptions): EtcdLocks {
    const { prefix, terms } = this;
    return new EtcdLocks({ url: this.server.url(), prefix, terms, ...given });
  }
}

/**
 * Lets hand-moved time pass for etcd's own leases too: time stands still between two steps, so a key that was written since the last
 * one was renewed in this very instant, and one whose time is over loses its lease as if it had run out.
 */
export class LeaseTime {
  readonly #cluster: EtcdCluster;
  readonly #time: ManualClock;
  readonly #renewed = new Map<string, { readonly revision: number; readonly at: number }>();

  constructor(cluster: EtcdCluster, time: ManualClock) {
    this.#cluster = cluster;
    this.#time = time;
  }

  async pass(ms: number, ttlMs: number): Promise<void> {
    const { server } = this.#cluster;
    const leaders = await server.entries(this.#cluster.key("leader", ""));
    for (const { key, revision } of leaders) {
      if (this.#renewed.get(key)?.revision !== revision)
        this.#renewed.set(key, { revision, at: this.#time.now() });
    }
    await this.#time.advance(ms);
    for (const { key, lease } of leaders) {
      if (this.#time.now() - this.#renewed.get(key)!.at >= ttlMs) await server.revoke(lease);
    }
  }
}

export function openEtcdLock(server: EtcdServer, rounds: number): Promise<LockWorld> {
  const cluster = new EtcdCluster(server);
  const time = new ManualClock();
  const leases = new LeaseTime(cluster, time);
  return openClusterLock(cluster, { rounds, time, elapse: (ms, ttlMs) => leases.pass(ms, ttlMs) });
}

export type EtcdElection = AdmittedElection<EtcdCluster>;

export function openEtcdElection(etcd: EtcdServer, postgres: SharedPostgres): Promise<EtcdElection> {
  return AdmittedElection.open(postgres, (terms) => new EtcdCluster(etcd, terms));
}
