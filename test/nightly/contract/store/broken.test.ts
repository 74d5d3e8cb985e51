import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type OpenStore, type Promises, StoreWorld } from "../../../support/store-world.ts";
import { BROKEN, opening } from "../../../contract/store/broken.ts";
import { IN_HISTORIES } from "../../../contract/store/broken-row.ts";
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
    if (caughtBy === IN_HISTORIES) {
      void test(`notices in random histories a store that ${fault}`, async () => {
        await assert.rejects(
          StoreWorld.with(opening(replace), (world) => randomHistories(world, { shrink: false })),
        );
      });
      continue;
    }
    void test(`notices a store that ${fault}`, async () => {
      const proof = ALL.find((promises) => caughtBy in promises)?.[caughtBy];
      assert.ok(proof, `the contract has no proof "${caughtBy}"`);
      // An assertion: a fault that only breaks the call would prove nothing.
      await assert.rejects(StoreWorld.with(opening(replace), proof), { code: "ERR_ASSERTION" });
    });
  }
});
