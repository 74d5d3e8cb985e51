import assert from "node:assert/strict";
import type { LeaderLocks, LeaseLock } from "../../../src/leadership/coordination.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import { candidate } from "../../support/lock-candidates.ts";
import { ROLE, type LockWorld } from "../../support/lock-world.ts";
import type { Promises } from "../promises.ts";

const crowd = Array.from({ length: 50 }, (_, i) => candidate(`node-${i}`));

/** All ask at once; what each was granted, in the order of the crowd. */
async function race({ lock, ttlMs }: LockWorld): Promise<Term[]> {
  const answers = await Promise.all(crowd.map((who) => lock.acquire(who, ttlMs)));
  for (const [i, term] of answers.entries()) {
    if (term) assert.equal(term.leader, crowd[i]!.name, "a term was handed to somebody else");
  }
  return answers.filter((term) => term !== null);
}

export const racePromises: Promises<LockWorld> = {
  "of all who stand at once, exactly one is elected": async (world) => {
    for (let round = 0; round < world.rounds; round++) {
      const terms = await race(world);
      assert.equal(terms.length, 1, `round ${round}: ${terms.length} were elected`);
      assert.deepEqual(await world.lock.read(), terms[0]);
      await world.lock.release(terms[0]!);
    }
  },

  "in every race each epoch has one holder, the highest of them leads, and none comes again": async (
    world,
  ) => {
    let highest = 0;
    for (let round = 0; round < world.rounds; round++) {
      const terms = await race(world);
      const epochs = terms.map((term) => term.epoch);
      assert.equal(new Set(epochs).size, epochs.length, `round ${round}: an epoch has two holders`);
      assert.ok(Math.min(...epochs) > highest, `round ${round}: an epoch came again`);
      highest = Math.max(...epochs);
      const leading = await world.lock.read();
      assert.equal(leading?.epoch, highest);
      for (const term of terms) {
        assert.equal(await world.lock.renew(term, world.ttlMs), term.epoch === highest);
      }
      await world.lock.release(leading);
    }
  },
};

/** Fifty candidates on several nodes, again and again; `end` ends each term in its way. */
export async function raceOn(
  members: readonly LeaderLocks[],
  { rounds, ttlMs }: { readonly rounds: number; readonly ttlMs: number },
  end: (round: number, term: Term, lock: LeaseLock) => Promise<unknown>,
): Promise<void> {
  const locks = members.map((member) => member.lock(ROLE));
  let highest = 0;
  for (let round = 0; round < rounds; round++) {
    const answers = await Promise.all(
      crowd.map(async (who, i) => {
        const lock = locks[i % locks.length]!;
        return { lock, term: await lock.acquire(who, ttlMs) };
      }),
    );
    const elected = answers.filter(({ term }) => term !== null);
    assert.equal(elected.length, 1, `round ${round}: ${elected.length} were elected`);
    const { lock, term } = elected[0]!;
    assert.ok(term!.epoch > highest, `round ${round}: epoch ${term!.epoch} after ${highest}`);
    highest = term!.epoch;
    const seen = await Promise.all(locks.map((each) => each.read()));
    for (const each of seen) assert.deepEqual(each, term);
    await end(round, term!, lock);
  }
}
