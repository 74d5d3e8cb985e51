/** Nodes that stand for leadership on a real server, with a real PostgreSQL beside it that admits their terms. */

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { LeaderLocks } from "../../src/leadership/coordination.ts";
import type { ElectorSettings } from "../../src/leadership/elector.ts";
import { hasCode } from "../../src/core/errors.ts";
import type { Term } from "../../src/core/leadership/term.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import type { Store, TermStore } from "../../src/store/store.ts";
import type { LockCluster, MemberOptions, Stander } from "./lock-cluster.ts";
import type { SharedPostgres } from "./postgres-server.ts";
import { eventually } from "./wait.ts";

/** A cluster whose terms are kept by a database of its own. */
export class AdmittedElection<Cluster extends LockCluster<LeaderLocks>> implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly store: Store;
  readonly storeAt: { readonly url: string; readonly schema: string };
  readonly #postgres: SharedPostgres;

  private constructor(
    cluster: Cluster,
    postgres: SharedPostgres,
    store: Store,
    storeAt: AdmittedElection<Cluster>["storeAt"],
  ) {
    this.cluster = cluster;
    this.#postgres = postgres;
    this.store = store;
    this.storeAt = storeAt;
  }

  static async open<Cluster extends LockCluster<LeaderLocks>>(
    postgres: SharedPostgres,
    cluster: (terms: TermStore) => Cluster,
  ): Promise<AdmittedElection<Cluster>> {
    const storeAt = { url: await postgres.createDatabase(), schema: "baton" };
    const store = await openPostgresStore({ ...storeAt, clock: systemClock, connections: 2 });
    return new AdmittedElection(cluster(store.terms), postgres, store, storeAt);
  }

  stander(name: string, settings: ElectorSettings, options?: MemberOptions): Promise<Stander> {
    return this.cluster.stander(name, settings, options);
  }

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
    await this.store.close();
    await this.#postgres.giveBack(this.storeAt.url);
  }
}

export const leads = ({ elector }: Pick<Stander, "elector">): Promise<Term> =>
  eventually("a term", () => elector.held());

/** A standby that was refused once watches the leader: what happens from now on is noticed by it. */
export const standsBy = ({ elector }: Pick<Stander, "elector">): Promise<Term> =>
  eventually("a standby that sees its leader", () => elector.current());

export function tellTimes(t: TestContext, what: string, times: readonly number[]): void {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): string => sorted[Math.floor(share * (sorted.length - 1))]!.toFixed(1);
  t.diagnostic(`${what}: p50 ${at(0.5)} ms, max ${at(1)} ms of ${times.length}`);
}

export const heldTerm = ({ elector }: Stander, term: Term): boolean => elector.held()?.epoch === term.epoch;

export const newest = (standers: readonly Stander[]): Term | undefined =>
  standers.flatMap(({ elector }) => elector.held() ?? []).toSorted((a, b) => b.epoch - a.epoch)[0];
