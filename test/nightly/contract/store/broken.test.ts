import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type OpenStore, type Promises, StoreWorld } from "../../../support/store-world.ts";
import { BROKEN, opening } from "../../../contract/store/broken.ts";
import { SUBJECTS } from "../../../contract/store/contract.ts";
import { randomHistories } from "../../../contract/store/model.ts";
import { OWNERSHIP_SUBJECTS } from "../../../contract/store/ownership.ts";

async function brokenPromises(open: OpenStore, subjects: readonly Promises[]): Promise<string[]> {
  const broken: string[] = [];
  for (const promises of subjects) {
    for (const [sentence, proof] of Object.entries(promises)) {
      try {
        await StoreWorld.with(open, proof);
      } catch {
        broken.push(sentence);
      }
    }
  }
  return broken;
}

const ALL = Object.values({ ...SUBJECTS, ...OWNERSHIP_SUBJECTS });

void describe("the store contract", () => {
  void test("holds on a store that breaks nothing", async () => {
    assert.deepEqual(
      await brokenPromises(
        opening(() => ({})),
        ALL,
      ),
      [],
    );
  });

  for (const [fault, [caughtBy, replace]] of Object.entries(BROKEN)) {
    void test(`notices a store that ${fault}`, async () => {
      const proof = ALL.find((promises) => caughtBy in promises)?.[caughtBy];
      assert.ok(proof, `the contract has no proof "${caughtBy}"`);
      // An assertion: a fault that only breaks the call would prove nothing.
      await assert.rejects(StoreWorld.with(opening(replace), proof), { code: "ERR_ASSERTION" });
    });
  }

  // Random histories are for faults that nobody thought of; a few known ones show whether they find any.
  for (const fault of [
    "accepts results under an old epoch",
    "does not raise the epoch when it recovers a job",
    "forgets idempotency keys",
    "hands a job out twice",
    "takes from paused queues",
    "never quarantines a job",
    "revives a lease that was ended",
    "takes a lease for lost when there is nothing to claim",
    "takes from queues that are excepted",
    "takes every life for ended",
    "takes no run from a lease that is renewed",
    "ends the lease of an overdue run",
    "tries an overdue job again without end",
  ]) {
    void test(`notices in random histories a store that ${fault}`, async () => {
      const open = opening(BROKEN[fault]![1]);
      await assert.rejects(
        StoreWorld.with(open, (world) => randomHistories(world, { shrink: false, runs: 300 })),
      );
    });
  }
});
