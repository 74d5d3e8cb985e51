/** Locks and memberships with one mistake each, and the promise whose proof must find it. */

import { describe, test } from "node:test";
import * as fc from "../../support/fast-check.ts";
import type { NodeIdentity } from "../../../src/core/node.ts";
import type { Membership, NodeRequest, Tenure } from "../../../src/leadership/coordination.ts";
import { sameTerm, type Term } from "../../../src/core/leadership/term.ts";
import { candidate } from "../../support/lock-candidates.ts";
import { MemoryLeaseLock, openMemoryLock } from "../../support/lock-memory.ts";
import { openStandaloneMembership } from "../../support/lock-standalone.ts";
import { findsOut, inWorldOf } from "../promises.ts";
import { lockPromises } from "./contract.ts";
import { membershipPromises, patience } from "./membership.ts";

class StealsByRenewal extends MemoryLeaseLock {
  override async renew(term: Term, ttlMs: number): Promise<boolean> {
    this.state.term = term;
    this.state.until = this.clock.monotonic() + ttlMs;
    return true;
  }
}

class RenewsByNameOnly extends MemoryLeaseLock {
  override async renew(term: Term, ttlMs: number): Promise<boolean> {
    const valid = this.valid();
    return valid !== null && valid.leader === term.leader && super.renew(valid, ttlMs);
  }
}

class RenewsByEpochOnly extends MemoryLeaseLock {
  override async renew(term: Term, ttlMs: number): Promise<boolean> {
    const valid = this.valid();
    return valid !== null && valid.epoch === term.epoch && super.renew(valid, ttlMs);
  }
}

class RevivesReleasedTerms extends MemoryLeaseLock {
  override async renew(term: Term, ttlMs: number): Promise<boolean> {
    if (this.state.term === null && term.epoch === this.state.epoch) {
      this.state.term = term;
      this.state.until = this.clock.monotonic() + ttlMs;
    }
    return super.renew(term, ttlMs);
  }
}

class ReusesEpochsAfterRelease extends MemoryLeaseLock {
  override async release(term: Term): Promise<void> {
    const ours = this.state.term && sameTerm(this.state.term, term);
    await super.release(term);
    if (ours) this.state.epoch -= 1;
  }
}

class ForgetsEpochsAtRestart extends MemoryLeaseLock {
  #epoch = 0;

  protected override grant(candidate: NodeIdentity, ttlMs: number): Term {
    this.state.epoch = this.#epoch++;
    return super.grant(candidate, ttlMs);
  }
}

class ReleasesLaterTerms extends MemoryLeaseLock {
  override async release(): Promise<void> {
    this.free();
  }
}

class GrantsWhileValid extends MemoryLeaseLock {
  override async acquire(candidate: NodeIdentity, ttlMs: number): Promise<Term> {
    return this.grant(candidate, ttlMs);
  }
}

class LooksThenLeaps extends MemoryLeaseLock {
  override async acquire(candidate: NodeIdentity, ttlMs: number): Promise<Term | null> {
    if (this.valid()) return null;
    await Promise.resolve();
    return this.grant(candidate, ttlMs);
  }
}

class SharesAnEpochInARace extends MemoryLeaseLock {
  override async acquire(candidate: NodeIdentity, ttlMs: number): Promise<Term | null> {
    const epoch = this.state.epoch;
    await Promise.resolve();
    this.state.epoch = epoch;
    return this.grant(candidate, ttlMs);
  }
}

class KeepsTheTermOfAHolderThatAsksAgain extends MemoryLeaseLock {
  override async acquire(candidate: NodeIdentity, ttlMs: number): Promise<Term | null> {
    const valid = this.valid();
    if (valid?.leader === candidate.name && valid.incarnation === candidate.incarnation) return valid;
    return super.acquire(candidate, ttlMs);
  }
}

class TakesALaterLifeForTheSameNode extends MemoryLeaseLock {
  override async acquire(candidate: NodeIdentity, ttlMs: number): Promise<Term | null> {
    if (this.valid()?.leader === candidate.name) return this.grant(candidate, ttlMs);
    return super.acquire(candidate, ttlMs);
  }
}

class ShowsTermsThatRanOut extends MemoryLeaseLock {
  override async read(): Promise<Term | null> {
    return this.state.term;
  }
}

class TakesARenewalForAGrant extends MemoryLeaseLock {
  override async renew(term: Term, ttlMs: number): Promise<boolean> {
    const renewed = await super.renew(term, ttlMs);
    if (renewed) this.state.acquiredAt = this.clock.monotonic();
    return renewed;
  }
}

class ShowsTheTenureOfEndedTerms extends MemoryLeaseLock {
  override async tenure(): Promise<Tenure | null> {
    const { term, acquiredAt, until } = this.state;
    return term && { ...term, acquiredAt, leaseUntil: until };
  }
}

class NeverRunsOut extends MemoryLeaseLock {
  protected override valid(): Term | null {
    return this.state.term;
  }
}

class NeverHints extends MemoryLeaseLock {
  // oxlint-disable-next-line require-yield
  override async *released(signal: AbortSignal): AsyncGenerator<void> {
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  }
}

class ListensForEver extends MemoryLeaseLock {
  override released(): AsyncIterable<void> {
    return super.released(new AbortController().signal);
  }
}

const ANY_ORDER = "any order of calls agrees with a plain lease";
const VERY_TERM = "a renewal and a release are for the very term, and for another one they do nothing";
const NEVER_TWICE = "an epoch is never given out twice: not after a release, an expiry or a restart";
const ONE_ELECTED = "of all who stand at once, exactly one is elected";
const TENURE = "a tenure is the term with the times of its grant and of its lease's end";

const BROKEN: readonly (readonly [typeof MemoryLeaseLock, ...sentences: string[]])[] = [
  [StealsByRenewal, ANY_ORDER],
  [RenewsByNameOnly, VERY_TERM],
  [RenewsByEpochOnly, VERY_TERM],
  [
    RevivesReleasedTerms,
    "any order of calls keeps epochs, renewals, releases and reads straight, whoever may supersede whom",
  ],
  [ReusesEpochsAfterRelease, NEVER_TWICE, ANY_ORDER],
  [ForgetsEpochsAtRestart, NEVER_TWICE],
  [ReleasesLaterTerms, VERY_TERM, ANY_ORDER],
  [GrantsWhileValid, ONE_ELECTED, ANY_ORDER],
  [LooksThenLeaps, ONE_ELECTED],
  [
    SharesAnEpochInARace,
    "in every race each epoch has one holder, the highest of them leads, and none comes again",
  ],
  [KeepsTheTermOfAHolderThatAsksAgain, ANY_ORDER],
  [TakesALaterLifeForTheSameNode, ANY_ORDER],
  [ShowsTermsThatRanOut, ANY_ORDER],
  [TakesARenewalForAGrant, TENURE],
  [ShowsTheTenureOfEndedTerms, TENURE],
  [NeverRunsOut, ANY_ORDER],
  [NeverHints, "a release is hinted at to whoever listens"],
  [ListensForEver, "listening for hints ends with its signal"],
];

patience.ms = 1_000;

// A nightly run draws other histories for whole locks; that a broken one is found must not depend on chance.
fc.configureGlobal({ seed: fc.FIXED_SEED });

describe("the contract of a lease lock finds out a lock that", { concurrency: true }, () => {
  for (const [Kind, ...sentences] of BROKEN) {
    for (const sentence of sentences) {
      test(`${inWords(Kind)}: ${sentence}`, () =>
        findsOut(lockPromises, sentence, inWorldOf(openMemoryLock(Kind))));
    }
  }
});

const DELIVERED = "a request for our name is delivered";
const REFUSED = "a request for a node that is not there is refused and delivered to no node";

async function* repeated(requests: AsyncIterable<NodeRequest>, times: number): AsyncGenerator<NodeRequest> {
  for await (const request of requests) for (let n = 0; n < times; n++) yield request;
}

const BROKEN_MEMBERSHIPS: Readonly<
  Record<string, readonly [replace: (whole: Membership) => Partial<Membership>, ...sentences: string[]]>
> = {
  "hides itself": [
    () => ({ nodes: () => [] }),
    "we are a member from the start, joining, with what we say of ourselves",
  ],
  "shows statuses late": [
    (whole) => ({ setStatus: async (status) => void setImmediate(() => void whole.setStatus(status)) }),
    "the status that we gave ourselves last is shown at once",
  ],
  "delivers requests twice": [
    (whole) => ({ requests: (signal) => repeated(whole.requests(signal), 2) }),
    "a request is delivered once",
    DELIVERED,
  ],
  "loses requests": [(whole) => ({ requests: (signal) => repeated(whole.requests(signal), 0) }), DELIVERED],
  "says yes to everybody": [
    (whole) => ({ ask: (node, request) => whole.ask(node, request).then(() => true) }),
    REFUSED,
  ],
  "delivers every request": [
    (whole) => ({ ask: (_, request) => whole.ask(candidate("ada").name, request) }),
    REFUSED,
  ],
  "forgets what nobody heard yet": [
    (whole) => {
      let heard = false;
      return {
        ask: async (node, request) => !heard || whole.ask(node, request),
        requests(signal) {
          heard = true;
          return whole.requests(signal);
        },
      };
    },
    "a request waits for a later follower, and only the last of several is delivered",
  ],
  "delivers requests for ever": [
    (whole) => ({ requests: () => whole.requests(new AbortController().signal) }),
    "following requests ends with its signal",
  ],
  "takes itself for dead": [
    () => ({ findDead: async () => [candidate("ada")] }),
    "whoever lives is not found dead, and laying nobody to rest is fine",
  ],
};

describe("the contract of membership finds out one that", { concurrency: true }, () => {
  for (const [mistake, [replace, ...sentences]] of Object.entries(BROKEN_MEMBERSHIPS)) {
    for (const sentence of sentences) {
      test(`${mistake}: ${sentence}`, () =>
        findsOut(membershipPromises, sentence, inWorldOf(openStandaloneMembership(replace))));
    }
  }
});

function inWords({ name }: { readonly name: string }): string {
  return name.replaceAll(/(?!^)[A-Z]/g, (letter) => ` ${letter}`).toLowerCase();
}
