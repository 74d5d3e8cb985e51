/** A list of nodes that all of them write themselves into, and a leader that looks at it. */

import assert from "node:assert/strict";
import type { Coordination } from "../../../src/leadership/coordination.ts";
import type { PostgresMembership } from "../../../src/leadership/postgres/membership.ts";
import { hasCode } from "../../../src/core/errors.ts";
import type { NodeIdentity } from "../../../src/core/node.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { candidate, granted } from "../../support/lock-candidates.ts";
import type { LockCluster, MemberOptions } from "../../support/lock-cluster.ts";
import { ROLE } from "../../support/lock-world.ts";
import { eventually } from "../../support/wait.ts";

export interface Member extends Coordination {
  readonly membership: PostgresMembership;
}

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

/** A cluster, and what somebody else can do to its list. */
export interface NodesWorld {
  readonly cluster: LockCluster<Member>;
  /** A node that is not there any more: only its entry is. */
  readonly leaveEntry: (name: string, fields?: EntryFields) => Promise<NodeIdentity>;
  readonly entry: (who: NodeIdentity) => Promise<Entry | null>;
  readonly write: (who: NodeIdentity, fields: { status: string } | { request: string }) => Promise<unknown>;
  /** As if it had never been there. */
  readonly remove: (who: NodeIdentity) => Promise<unknown>;
  readonly loseList: () => Promise<unknown>;
  readonly count: () => Promise<number>;
  /** Takes a living node for dead and gives its name to another, who is not there either. */
  readonly displace: (who: NodeIdentity) => Promise<NodeIdentity>;
  /** Everything that a node has at the server breaks, as with kill -9; its process goes on. */
  readonly endConnections: (who: NodeIdentity) => Promise<unknown>;
  /** Until a server has run for so long: on one that has only just started a missing life proves nothing. */
  readonly settled: (forMs: number) => Promise<void>;
}

/** Quick, so that heartbeats matter within a test. The end of a life is noticed in 0.3 s whatever this says. */
export const QUICK = { heartbeatMs: 50, deadAfterMs: 600, forgetAfterMs: 3_600_000 };
/** So long that a busy machine finds the end of a life in half of it. */
export const CALM = { ...QUICK, deadAfterMs: 6_000 };

export interface Leader<Kind extends Member = Member> {
  readonly coordination: Kind;
  readonly term: Term;
  /** Looks as often as a leader does, until somebody is found. */
  readonly firstDead: () => Promise<readonly NodeIdentity[]>;
  /** Looks for so long, and nobody is found. */
  readonly nobodyDead: (ms: number) => Promise<void>;
}

export async function leader<Kind extends Member>(
  cluster: LockCluster<Kind>,
  options: MemberOptions = {},
): Promise<Leader<Kind>> {
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
export async function goOn({ membership }: Member, term: Term, bob: Member): Promise<void> {
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
