/**
 * The contract of coordination where all nodes write themselves into one list: that of membership, who is dead, and whose name it is.
 */

import assert from "node:assert/strict";
import { describe } from "node:test";
import { systemRandom } from "../../../src/platform/random.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";
import { candidate, granted, OWN_INFO } from "../../support/lock-candidates.ts";
import { ROLE } from "../../support/lock-world.ts";
import { prove } from "../promises.ts";
import { membershipContract } from "./membership.ts";
import { deathPromises } from "./node-deaths.ts";
import { namePromises } from "./node-names.ts";
import { QUICK, type NodesWorld } from "./nodes-world.ts";

export function registeredNodesContract(name: string, open: () => Promise<NodesWorld>): void {
  membershipContract(name, async () => {
    const { cluster } = await open();
    const identity = candidate("ada", systemRandom.uuid());
    const ada = await cluster.start("ada", { identity, settings: QUICK });
    return {
      membership: ada.membership,
      identity,
      info: OWN_INFO,
      fence: await granted(ada.lock(ROLE), identity, 60_000),
      join: async (another) => (await cluster.start(another, { settings: QUICK })).membership,
      close: () => cluster[Symbol.asyncDispose](),
    };
  });

  const within = async (proof: (world: NodesWorld) => Promise<void>): Promise<void> => {
    const world = await open();
    await using _ = world.cluster;
    await proof(world);
  };
  prove(`nodes on ${name}`, { ...deathPromises(), ...namePromises }, within, {}, { concurrency: 4 });

  describe(`coordination on ${name}`, () => {
    lifecycleStress(`${name} coordination`, async () => {
      const { cluster } = await open();
      const identity = candidate("ada", systemRandom.uuid());
      return {
        service: cluster.member("ada", { identity, settings: QUICK }),
        works: async (coordination) => {
          const lock = coordination.lock(ROLE);
          await lock.release(await granted(lock, identity, 60_000));
          assert.equal(coordination.membership.nodes().length, 1);
        },
        close: () => cluster[Symbol.asyncDispose](),
      };
    });
  });
}
