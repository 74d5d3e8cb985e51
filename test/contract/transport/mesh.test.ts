import assert from "node:assert/strict";
import { describe } from "node:test";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";
import { openMeshTransport } from "../../support/mesh-world.ts";
import { transportContract } from "./contract.ts";

transportContract("mesh", openMeshTransport());

describe("the mesh", () => {
  lifecycleStress("the mesh transport", async () => {
    const world = await openMeshTransport()();
    await world.transport.stop();
    const peer = await world.listen(() => ({ status: 200 }));
    return {
      service: world.transport,
      works: async (transport) => {
        const outcome = await transport.call(peer.url, { method: "GET", path: "/" }, { deadlineMs: 5_000 });
        assert.equal(outcome.outcome, "reply", JSON.stringify(outcome));
      },
      close: world.close,
    };
  });
});
