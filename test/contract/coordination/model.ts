/** Any order of calls by four candidates, two of which are lives of one node, against the plainest model of a lease. */

import assert from "node:assert/strict";
import * as fc from "../../support/fast-check.ts";
import type { NodeIdentity } from "../../../src/core/node.ts";
import { heldBy, sameTerm, type Term } from "../../../src/core/leadership/term.ts";
import { candidate } from "../../support/lock-candidates.ts";
import type { LockWorld } from "../../support/lock-world.ts";
import type { Promises } from "../promises.ts";

const who = [candidate("ada"), candidate("ada", "ada/2"), candidate("bob"), candidate("cyd")];

type Step =
  | { readonly do: "acquire"; readonly who: NodeIdentity }
  /** `back`: 0 is the newest term that was granted. */
  | { readonly do: "renew" | "release"; readonly back: number }
  /** Shares of the ttl that never add up to a whole one, so that no step falls on the very end of a lease. */
  | { readonly do: "elapse"; readonly share: number };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant("acquire" as const), who: fc.constantFrom(...who) }),
    fc.record({ do: fc.constantFrom("renew" as const, "release" as const), back: fc.nat(2) }),
    fc.record({ do: fc.constant("elapse" as const), share: fc.constantFrom(0.37, 1.13) }),
  ),
  { maxLength: 25, size: "max" },
);

/** Works on one lock for all runs: what came before must not matter, apart from the epochs. */
async function follow(world: LockWorld, plan: readonly Step[], exclusive: boolean): Promise<void> {
  const { lock, ttlMs } = world;
  const granted: Term[] = [];
  const released = new Set<Term>();
  const before = await lock.read();
  if (before) await lock.release(before);
  let valid: Term | null = null;
  let left = 1;

  for (const step of plan) {
    switch (step.do) {
      case "acquire": {
        const term = await lock.acquire(step.who, ttlMs);
        if (!term) {
          assert.ok(valid && !heldBy(valid, step.who), "refused although the lock was free");
          break;
        }
        assert.ok(heldBy(term, step.who), "granted in another name");
        if (exclusive) assert.ok(!valid || heldBy(valid, step.who), "granted while another lease is valid");
        for (const earlier of granted) assert.ok(term.epoch > earlier.epoch, "an epoch came again");
        granted.push(term);
        valid = term;
        left = 1;
        break;
      }
      case "renew": {
        const term = granted.at(-1 - step.back);
        if (!term) break;
        const mine = valid !== null && sameTerm(valid, term);
        const ended = term !== granted.at(-1) || released.has(term);
        const renewed = await lock.renew(term, ttlMs);
        if (mine) assert.ok(renewed, "a valid term was not renewed");
        if (ended) assert.ok(!renewed, "a superseded or released term was renewed");
        // Whether a lease that ran out, and that nobody else was granted, may be renewed is the keeper's choice.
        if (renewed) [valid, left] = [term, 1];
        break;
      }
      case "release": {
        const term = granted.at(-1 - step.back);
        if (!term) break;
        await lock.release(term);
        released.add(term);
        if (valid && sameTerm(valid, term)) valid = null;
        break;
      }
      case "elapse":
        await world.elapse(ttlMs * step.share);
        left -= step.share;
        if (left <= 0) valid = null;
        break;
    }
    assert.deepEqual(await lock.read(), valid, `after ${step.do}`);
  }
}

function property(world: LockWorld, exclusive: boolean): Promise<void> {
  const plan = fc.asyncProperty(steps, (plan) => follow(world, plan, exclusive));
  return Promise.resolve(fc.assert(plan, { numRuns: world.rounds, interruptAfterTimeLimit: 20_000 }));
}

export const modelPromises: Promises<LockWorld> = {
  "any order of calls agrees with a plain lease": (world) => property(world, true),
  "any order of calls keeps epochs, renewals, releases and reads straight, whoever may supersede whom": (
    world,
  ) => property(world, false),
};
