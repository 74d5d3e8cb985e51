/** The contract of membership: what every keeper of the coordination port owes to the rest of a node. */

import assert from "node:assert/strict";
import type { Membership, NodeWish } from "../../../src/coordination/coordination.ts";
import type { NodeName } from "../../../src/core/ids.ts";
import type { NodeIdentity, OwnInfo } from "../../../src/core/node.ts";
import type { Term } from "../../../src/core/term.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { prove, type Promises, type Skips } from "../promises.ts";

export interface MembershipWorld {
  readonly membership: Membership;
  readonly identity: NodeIdentity;
  readonly info: OwnInfo;
  /** A term of this node. */
  readonly fence: Term;
  /** One more node, running. */
  readonly join: (name: string) => Promise<Membership>;
  readonly close: () => Promise<void>;
}

export type OpenMembership = () => Promise<MembershipWorld>;

export function withMembership(
  open: OpenMembership,
): (proof: (world: MembershipWorld) => Promise<void>) => Promise<void> {
  return async (proof) => {
    const world = await open();
    try {
      await proof(world);
    } finally {
      await world.close();
    }
  };
}

const nobody = "nobody" as NodeName;
/** Longer than anything takes to be told. */
const SILENCE_MS = 50;
const PATIENCE_MS = 5_000;

/** Wishes as they come; `none` waits a moment for what must not come. */
function listen(membership: Membership): {
  next(): Promise<NodeWish>;
  none(): Promise<void>;
  end(): Promise<void>;
} {
  const over = new AbortController();
  const heard: NodeWish[] = [];
  const listening = (async () => {
    for await (const wish of membership.wishes(over.signal)) heard.push(wish);
  })();
  return {
    next: async () => {
      await eventually("a wish", () => heard.length > 0);
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

export async function eventually(what: string, is: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAt = systemClock.monotonic() + PATIENCE_MS;
  while (!(await is())) {
    assert.ok(systemClock.monotonic() < giveUpAt, `in vain: ${what}`);
    await systemClock.sleep(2);
  }
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

  "a wish for our name is told": async ({ membership, identity }) => {
    const wishes = listen(membership);
    for (const wish of ["drain", "resume"] as const) {
      assert.equal(await membership.ask(identity.name, wish), true);
      assert.equal(await wishes.next(), wish);
    }
    await wishes.end();
  },

  "a wish is told once": async ({ membership, identity }) => {
    const wishes = listen(membership);
    await membership.ask(identity.name, "drain");
    await wishes.next();
    await membership.setStatus("draining");
    await wishes.none();
    await wishes.end();
    const again = listen(membership);
    await again.none();
    await again.end();
  },

  "a wish waits for whoever follows later, and only the last of several is told": async (world) => {
    const { membership, identity } = world;
    await membership.ask(identity.name, "drain");
    await membership.ask(identity.name, "resume");
    await systemClock.sleep(SILENCE_MS);
    const wishes = listen(membership);
    assert.equal(await wishes.next(), "resume");
    await wishes.none();
    await wishes.end();
  },

  "a wish for somebody who is not there is refused and told to nobody": async ({ membership }) => {
    const wishes = listen(membership);
    assert.equal(await membership.ask(nobody, "drain"), false);
    await wishes.none();
    await wishes.end();
  },

  "following wishes ends with its signal": async ({ membership }) => {
    await listen(membership).end();
    for await (const wish of membership.wishes(AbortSignal.abort())) assert.fail(`told ${wish}`);
  },

  "whoever lives is not found dead, and laying nobody to rest is fine": async ({ membership, fence }) => {
    for (let look = 0; look < 3; look++) assert.deepEqual(await membership.findDead(fence), []);
    await membership.laidToRest([], fence);
  },

  [OTHERS]: async ({ membership, identity, info, join }) => {
    const zoe = await join("zoe");
    await join("abe");
    await zoe.setStatus("active");
    await eventually("everybody", () => zoe.nodes().length === 3);
    await eventually("an active zoe", () => membership.nodes()[2]?.status === "active");
    const seen = membership.nodes();
    assert.deepEqual(
      seen.map(({ name }) => name),
      ["abe", identity.name, "zoe"],
    );
    const { name, incarnation, lastSeenAt } = seen[2]!;
    const told = { ...info, status: "active", alive: true };
    assert.deepEqual(seen[2], { ...told, name, incarnation, lastSeenAt });
    await zoe.setStatus("draining");
    await eventually("the new status", () => membership.nodes()[2]?.status === "draining");
  },

  [ASKED]: async ({ membership, join }) => {
    const zoe = await join("zoe");
    const wishes = listen(zoe);
    const own = listen(membership);
    assert.equal(await membership.ask("zoe" as NodeName, "drain"), true);
    assert.equal(await wishes.next(), "drain");
    await own.none();
    await Promise.all([wishes.end(), own.end()]);
  },
};

export function membershipContract(
  name: string,
  open: OpenMembership,
  { skip = {} }: { skip?: Skips } = {},
): void {
  prove(`the ${name} membership`, membershipPromises, withMembership(open), skip);
}
