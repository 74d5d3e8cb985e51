import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "../../support/manual-clock.ts";
import { MemoryNetwork, type PeerReply } from "../../support/memory-network.ts";
import type { Outcome, Transport } from "../../../src/transport/transport.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";
import { openMemoryTransport } from "../../support/peer-world.ts";
import { transportContract } from "./contract.ts";

transportContract("memory", openMemoryTransport);

const A = "http://a:1";
const B = "http://b:1";
const PING = { method: "POST", path: "/ping" } as const;

async function opened(): Promise<{
  clock: ManualClock;
  network: MemoryNetwork;
  arrived: string[];
  a: Transport;
  /** What came of it so far. */
  ping: () => { outcome: () => Outcome["outcome"] | null };
}> {
  const clock = new ManualClock();
  const network = new MemoryNetwork(clock);
  const arrived: string[] = [];
  network.listen(B, async ({ from, path }): Promise<PeerReply> => {
    arrived.push(`${from}${path}`);
    return { status: 200, body: "pong" };
  });
  const a = network.transport(A);
  await a.start();
  const ping = (): { outcome: () => Outcome["outcome"] | null } => {
    let seen: Outcome["outcome"] | null = null;
    void a.call(B, PING, { deadlineMs: 1_000 }).then(({ outcome }) => (seen = outcome));
    return { outcome: () => seen };
  };
  return { clock, network, arrived, a, ping };
}

describe("a network in memory", () => {
  test("a peer is told who calls", async () => {
    const { clock, arrived, ping } = await opened();
    const seen = ping();
    await clock.advance(0);
    assert.equal(seen.outcome(), "reply");
    assert.deepEqual(arrived, [`${A}/ping`]);
  });

  test("a silent cut lets the request vanish: unknown, at the deadline", async () => {
    const { clock, network, arrived, ping } = await opened();
    network.cut(A, B);
    const seen = ping();
    await clock.advance(999);
    assert.equal(seen.outcome(), null);
    await clock.advance(1);
    assert.equal(seen.outcome(), "unknown");
    assert.deepEqual(arrived, []);
  });

  test("a refusing cut is told at once", async () => {
    const { clock, network, arrived, ping } = await opened();
    network.cut(A, B, "refused");
    const seen = ping();
    await clock.advance(0);
    assert.equal(seen.outcome(), "refused");
    assert.deepEqual(arrived, []);
  });

  test("a cut of the way back alone loses the reply: carried out, and unknown", async () => {
    const { clock, network, arrived, ping } = await opened();
    network.setLink(B, A, { state: "silent" });
    const seen = ping();
    await clock.advance(1_000);
    assert.equal(seen.outcome(), "unknown");
    assert.equal(arrived.length, 1);
  });

  test("delays add up over both ways, and healing removes them", async () => {
    const { clock, network, ping } = await opened();
    network.setLink(A, B, { delayMs: 100 });
    network.setLink(B, A, { delayMs: 50 });
    const slow = ping();
    await clock.advance(149);
    assert.equal(slow.outcome(), null);
    await clock.advance(1);
    assert.equal(slow.outcome(), "reply");
    network.heal();
    const quick = ping();
    await clock.advance(0);
    assert.equal(quick.outcome(), "reply");
  });

  test("a request that is on its way arrives after the caller gave up", async () => {
    const { clock, network, arrived, ping } = await opened();
    network.setLink(A, B, { delayMs: 5_000 });
    const seen = ping();
    await clock.advance(1_000);
    assert.equal(seen.outcome(), "unknown");
    assert.deepEqual(arrived, []);
    await clock.advance(4_000);
    assert.equal(arrived.length, 1);
  });

  test("an url has one listener at a time", () => {
    const network = new MemoryNetwork(new ManualClock());
    const close = network.listen(A, async () => ({ status: 200 }));
    assert.throws(() => network.listen(`${A}/`, async () => ({ status: 200 })), /listens at http:\/\/a:1/);
    close();
    network.listen(A, async () => ({ status: 200 }));
    close();
    assert.throws(() => network.listen(A, async () => ({ status: 200 })), /listens/);
  });

  lifecycleStress("the memory transport", async () => {
    const world = await openMemoryTransport();
    await world.transport.stop();
    const peer = await world.listen(() => ({ status: 200 }));
    return {
      service: world.transport,
      works: async (transport) => {
        const outcome = await transport.call(peer.url, PING, { deadlineMs: 5_000 });
        assert.equal(outcome.outcome, "reply");
      },
      close: world.close,
    };
  });
});
