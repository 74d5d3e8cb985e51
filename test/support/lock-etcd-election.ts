/** Nodes that stand for leadership on a real etcd, with a real PostgreSQL that admits their terms. */

import assert from "node:assert/strict";
import { Elector } from "../../src/coordination/elector.ts";
import type { ElectorSettings } from "../../src/coordination/elector-settings.ts";
import type { EtcdCoordination } from "../../src/coordination/etcd/etcd.ts";
import { hasCode } from "../../src/core/errors.ts";
import type { NodeIdentity } from "../../src/core/node.ts";
import type { Term } from "../../src/core/term.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { PostgresStore } from "../../src/store/postgres/postgres.ts";
import type { Store } from "../../src/store/store.ts";
import type { EtcdServer } from "./etcd-server.ts";
import { candidate } from "./lock-candidates.ts";
import type { MemberOptions } from "./lock-cluster.ts";
import { EtcdCluster } from "./lock-etcd.ts";
import { ROLE } from "./lock-world.ts";
import type { PostgresServer } from "./postgres-server.ts";

export interface EtcdStander extends AsyncDisposable {
  readonly identity: NodeIdentity;
  readonly coordination: EtcdCoordination;
  readonly elector: Elector;
}

/** A cluster whose terms are kept by a database of its own. */
export class EtcdElection implements AsyncDisposable {
  readonly cluster: EtcdCluster;
  readonly store: Store;
  readonly storeAt: { readonly url: string; readonly schema: string };
  readonly #postgres: PostgresServer;

  private constructor(
    etcd: EtcdServer,
    postgres: PostgresServer,
    store: Store,
    storeAt: EtcdElection["storeAt"],
  ) {
    this.cluster = new EtcdCluster(etcd, store.terms);
    this.#postgres = postgres;
    this.store = store;
    this.storeAt = storeAt;
  }

  static async open(etcd: EtcdServer, postgres: PostgresServer): Promise<EtcdElection> {
    const storeAt = { url: await postgres.createDatabase(), schema: "baton" };
    const store = new PostgresStore({ ...storeAt, clock: systemClock, connections: 2 });
    await store.start();
    return new EtcdElection(etcd, postgres, store, storeAt);
  }

  /** The elector ends before its coordination does. */
  async stander(name: string, settings: ElectorSettings, options: MemberOptions = {}): Promise<EtcdStander> {
    const identity = candidate(name, systemRandom.uuid());
    const coordination = await this.cluster.start(name, { identity, ...options });
    const shared = { identity, clock: systemClock, random: systemRandom };
    const elector = new Elector({ lock: coordination.lock(ROLE), role: ROLE, settings, ...shared });
    await elector.start();
    return { identity, coordination, elector, [Symbol.asyncDispose]: () => elector.stop() };
  }

  /** Whether the store takes a write under this term. */
  async takes(term: Term): Promise<boolean> {
    try {
      await this.store.samples.note("{}", term);
      return true;
    } catch (error) {
      assert.ok(hasCode(error, "STALE_EPOCH"), String(error));
      return false;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]();
    await this.store.stop();
    await this.#postgres.giveBack(this.storeAt.url);
  }
}
