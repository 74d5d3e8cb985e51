import assert from "node:assert/strict";
import type { Membership } from "../../src/leadership/coordination.ts";
import { StandaloneCoordination } from "../../src/leadership/standalone/coordination.ts";
import type { TermStore } from "../../src/store/store.ts";
import type { OpenMembership } from "../contract/coordination/membership.ts";
import { candidate, granted, OWN_INFO } from "./lock-candidates.ts";
import { MemoryTerms } from "./lock-terms.ts";
import { ROLE } from "./lock-world.ts";
import { ManualClock } from "./manual-clock.ts";

export function openStandalone(clock = new ManualClock(), terms: TermStore = new MemoryTerms()) {
  return new StandaloneCoordination({ identity: candidate("ada"), info: () => OWN_INFO, terms, clock });
}

/** With some methods replaced, to break it. */
export function openStandaloneMembership(
  replace: (whole: Membership) => Partial<Membership> = () => ({}),
): OpenMembership {
  return async () => {
    const coordination = openStandalone();
    await coordination.start();
    const identity = candidate("ada");
    const fence = await granted(coordination.lock(ROLE), identity, 1_000);
    const whole = coordination.membership;
    return {
      membership: { ...whole, ...replace(whole) },
      identity,
      info: OWN_INFO,
      fence,
      join: () => assert.fail("a cluster of one"),
      close: () => coordination.stop(),
    };
  };
}
