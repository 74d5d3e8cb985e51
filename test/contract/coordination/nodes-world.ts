/** A list of nodes in PostgreSQL that all of them write themselves into, what somebody else can do to it, and a leader that looks at it. */

import assert from "node:assert/strict";
import { after } from "node:test";
import type { PostgresCoordination } from "../../../src/leadership/postgres/coordination.ts";
import type { PostgresMembership } from "../../../src/leadership/postgres/membership.ts";
import { hasCode } from "../../../src/core/errors.ts";
import type { NodeIdentity } from "../../../src/core/node.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { applicationPrefix } from "../../../src/platform/drivers/postgres/session.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { candidate, granted } from "../../support/lock-candidates.ts";
import type { MemberOptions } from "../../support/lock-cluster.ts";
import { PostgresCluster } from "../../support/lock-postgres.ts";
import { ROLE } from "../../support/lock-world.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { eventually } from "../../support/wait.ts";

const server = await PostgresServer.shared();
after(() => server.stop());

export interface EntryFields {
  readonly status?: string;
  /** Only its heartbeats say whether it lives: it has not visibly ended. */
  readonly unseen?: boolean;
  readonly heartbeatAgoMs?: number;
}

export interface Entry {
  readonly status: string;
  readonly recovered: boolean;
  /** As a leader sees it. */
  readonly heartbeat: number;
  readonly request: string | null;
}

/** Quick, so that heartbeats matter within a test. The end of a life is noticed in 0.3 s whatever this says. */
export const QUICK = { heartbeatMs: 50, deadAfterMs: 600, forgetAfterMs: 3_600_000 };
/** So long that a busy machine finds the end of a life in half of it. */
export const CALM = { ...QUICK, deadAfterMs: 6_000 };

export async function openNodes() {
  const cluster = await PostgresCluster.open(server);
  const at = ({ incarnation }: NodeIdentity): string => `WHERE incarnation = '${incarnation}'`;

  const entering = ({ name, incarnation }: NodeIdentity, fields: EntryFields = {}): string => {
    const { status = "active", unseen = false, heartbeatAgoMs = 0 } = fields;
    return `INSERT INTO baton.node (incarnation, name, hostname, roles, capabilities, version, status, started_at,
        last_heartbeat, load, info, locked)
      VALUES ('${incarnation}', '${name}', 'there', '{}', '{}', '9.9.9', '${status}', 1000000,
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint - ${heartbeatAgoMs}, '{}', '{}', ${!unseen})`;
  };

  return {
    cluster,
    /** A node that is not there any more: only its entry is. */
    leaveEntry: async (name: string, fields?: EntryFields) => {
      const identity = candidate(name, systemRandom.uuid());
      await cluster.sql(entering(identity, fields));
      return identity;
    },
    entry: async (who: NodeIdentity) => {
      const [row] = await cluster.sql(
        `SELECT status, recovered, last_heartbeat::float AS heartbeat, wish AS request FROM baton.node ${at(who)}`,
      );
      return (row as Entry | undefined) ?? null;
    },
    write: (who: NodeIdentity, fields: { status: string } | { request: string }) => {
      const set = Object.entries(fields).map(
        ([name, value]) => `${name === "request" ? "wish" : name} = '${value}'`,
      );
      return cluster.sql(`UPDATE baton.node SET ${set.join(", ")} ${at(who)}`);
    },
    /** As if it had never been there. */
    remove: (who: NodeIdentity) => cluster.sql(`DELETE FROM baton.node ${at(who)}`),
    loseList: () => cluster.sql("DELETE FROM baton.node"),
    count: async () => (await cluster.sql("SELECT 1 FROM baton.node")).length,
    /**
     * Takes a living node for dead and gives its name to another, who is not there either. In one transaction: with its next
     * heartbeat it would have its name back.
     */
    displace: async (who: NodeIdentity) => {
      const other = candidate(who.name, systemRandom.uuid());
      await cluster.sql(
        `UPDATE baton.node SET status = 'dead' ${at(who)}; ${entering(other, { unseen: true })}`,
      );
      return other;
    },
    /** Everything that a node has at the server breaks, as with kill -9; its process goes on. */
    endConnections: ({ incarnation }: NodeIdentity) =>
      cluster.sql(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE starts_with(application_name, '${applicationPrefix(incarnation)}')`,
      ),
    /** Until the server has run for so long: on one that has only just started a missing life proves nothing. */
    settled: async (forMs: number) => {
      await eventually("a server that has run for a while", async () => {
        const text = "SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) * 1000 AS up";
        return Number((await cluster.sql(text))[0]!["up"]) > forMs;
      });
    },
  };
}

export type NodesWorld = Awaited<ReturnType<typeof openNodes>>;

export interface Leader {
  readonly coordination: PostgresCoordination;
  readonly term: Term;
  /** Looks as often as a leader does, until somebody is found. */
  readonly firstDead: () => Promise<readonly NodeIdentity[]>;
  /** Looks for so long, and nobody is found. */
  readonly nobodyDead: (ms: number) => Promise<void>;
}

export async function leader(cluster: PostgresCluster, options: MemberOptions = {}): Promise<Leader> {
  const identity = candidate("leader", systemRandom.uuid());
  const coordination = await cluster.start("leader", { settings: QUICK, ...options, identity });
  const term = await granted(coordination.lock(ROLE), identity, 60_000);
  const look = (): Promise<readonly NodeIdentity[]> => coordination.membership.findDead(term);
  return {
    coordination,
    term,
    firstDead: async () => {
      let dead: readonly NodeIdentity[] = [];
      await eventually("a dead node", async () => {
        dead = await look();
        if (dead.length === 0) await systemClock.sleep(50);
        return dead.length > 0;
      });
      return dead;
    },
    nobodyDead: async (ms) => {
      for (const until = systemClock.monotonic() + ms; systemClock.monotonic() < until;) {
        assert.deepEqual(await look(), []);
        await systemClock.sleep(50);
      }
    },
  };
}

/** A leader and a node look on while their server is away and comes back: nobody dies, and everybody goes on. */
export async function goOn(
  { membership }: PostgresCoordination,
  term: Term,
  bob: PostgresCoordination,
): Promise<void> {
  let looks = 0;
  for (const until = systemClock.monotonic() + 2_500; systemClock.monotonic() < until;) {
    try {
      assert.deepEqual(await membership.findDead(term), []);
      looks += 1;
    } catch (error) {
      assert.ok(hasCode(error, "STORE_UNAVAILABLE"), String(error));
    }
    await systemClock.sleep(50);
  }
  assert.ok(looks > 10, `only ${looks} looks`);
  await bob.membership.setStatus("active");
  await eventually("bob is heard", () => sees(membership, "bob", "active"));
}

export function sees(membership: PostgresMembership, who: string, as: string): boolean {
  return membership.nodes().some(({ name, status }) => name === who && status === as);
}
