/** The contract of membership: what every keeper of the coordination port owes to the rest of a node. */

import assert from "node:assert/strict";
import type { Membership, NodeRequest } from "../../../src/leadership/coordination.ts";
import type { NodeName } from "../../../src/core/ids.ts";
import type { NodeIdentity, OwnInfo } from "../../../src/core/node.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { inWorldOf, prove, type Promises, type Skips } from "../promises.ts";
import { eventually } from "../../support/wait.ts";
import { column } from "../../support/columns.ts";

export interface MembershipWorld {
  readonly membership: Membership;
  readonly identity: NodeIdentity;
  readonly info: OwnInfo;
  /** A term of this node. */
  readonly fence: Term;
  readonly join: (name: string) => Promise<Membership>;
  readonly close: () => Promise<void>;
}

export type OpenMembership = () => Promise<MembershipWorld>;

const nobody = "nobody" as NodeName;
/** Longer than anything takes to be told. */
const SILENCE_MS = 50;
/** Used up only by a membership that lost something; the broken ones are given less. */
export const patience = { ms: 30_000 };

/** Requests as they come; `none` waits a moment for what must not come. */
function listen(membership: Membership): {
  next(): Promise<NodeRequest>;
  none(): Promise<void>;
  end(): Promise<void>;
} {
  const over = new AbortController();
  const heard: NodeRequest[] = [];
  const listening = (async () => {
    for await (const request of membership.requests(over.signal)) heard.push(request);
  })();
  return {
    next: async () => {
      await eventually("a request", () => heard.length > 0, patience.ms);
      return heard.shift()!;
    },
    none: async () => {
      await systemClock.sleep(SILENCE_MS);
      assert.deepEqual(heard, []);
    },
    end: async () => {
      over.abort();
      await listening;
    },
  };
}

const OTHERS =
  "others are seen in the order of their names, with what they say of themselves and their status";
const ASKED = "any node can ask any other";
export const MANY: readonly string[] = [OTHERS, ASKED];

export const membershipPromises: Promises<MembershipWorld> = {
  "we are a member from the start, joining, with what we say of ourselves": async (world) => {
    const { membership, identity, info } = world;
    const [own, ...others] = membership.nodes();
    assert.ok(own);
    assert.deepEqual(others, []);
    const { lastSeenAt, ...rest } = own;
    assert.deepEqual(rest, { ...info, ...identity, status: "joining", alive: true });
    assert.ok(lastSeenAt > 0);
  },

  "the status that we gave ourselves last is shown at once": async ({ membership }) => {
    for (const status of ["active", "draining", "active"]) {
      await membership.setStatus(status);
      assert.equal(membership.nodes()[0]?.status, status);
    }
  },

  "a request for our name is delivered": async ({ membership, identity }) => {
    const requests = listen(membership);
    for (const request of ["drain", "resume"] as const) {
      assert.equal(await membership.ask(identity.name, request), true);
      assert.equal(await requests.next(), request);
    }
    await requests.end();
  },

  "a request is delivered once": async ({ membership, identity }) => {
    const requests = listen(membership);
    await membership.ask(identity.name, "drain");
    await requests.next();
    await membership.setStatus("draining");
    await requests.none();
    await requests.end();
    const again = listen(membership);
    await again.none();
    await again.end();
  },

  "a request waits for a later follower, and only the last of several is delivered": async (world) => {
    const { membership, identity } = world;
    await membership.ask(identity.name, "drain");
    await membership.ask(identity.name, "resume");
    await systemClock.sleep(SILENCE_MS);
    const requests = listen(membership);
    assert.equal(await requests.next(), "resume");
    await requests.none();
    await requests.end();
  },

  "a request for a node that is not there is refused and delivered to no node": async ({ membership }) => {
    const requests = listen(membership);
    assert.equal(await membership.ask(nobody, "drain"), false);
    await requests.none();
    await requests.end();
  },

  "following requests ends with its signal": async ({ membership }) => {
    await listen(membership).end();
    for await (const request of membership.requests(AbortSignal.abort())) assert.fail(`delivered ${request}`);
  },

  "whoever lives is not found dead, and laying nobody to rest is fine": async ({ membership, fence }) => {
    for (let look = 0; look < 3; look++) assert.deepEqual(await membership.findDead(fence), []);
    await membership.markRecovered([], fence);
  },

  [OTHERS]: async ({ membership, identity, info, join }) => {
    const zoe = await join("zoe");
    await join("abe");
    await zoe.setStatus("active");
    await eventually("everybody", () => zoe.nodes().length === 3, patience.ms);
    await eventually("an active zoe", () => membership.nodes()[2]?.status === "active", patience.ms);
    const seen = membership.nodes();
    assert.deepEqual(column(seen, "name"), ["abe", identity.name, "zoe"]);
    const { name, incarnation, lastSeenAt } = seen[2]!;
    const told = { ...info, status: "active", alive: true };
    assert.deepEqual(seen[2], { ...told, name, incarnation, lastSeenAt });
    await zoe.setStatus("draining");
    await eventually("the new status", () => membership.nodes()[2]?.status === "draining", patience.ms);
  },

  [ASKED]: async ({ membership, join }) => {
    const zoe = await join("zoe");
    const requests = listen(zoe);
    const own = listen(membership);
    assert.equal(await membership.ask("zoe" as NodeName, "drain"), true);
    assert.equal(await requests.next(), "drain");
    await own.none();
    await Promise.all([requests.end(), own.end()]);
  },
};

export function membershipContract(
  name: string,
  open: OpenMembership,
  { skip = {} }: { skip?: Skips } = {},
): void {
  prove(`the ${name} membership`, membershipPromises, inWorldOf(open), skip);
}
