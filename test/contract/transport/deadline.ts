import assert from "node:assert/strict";
import { systemClock } from "../../../src/platform/clock.ts";
import type { Outcome } from "../../../src/transport/transport.ts";
import { reached, type TransportWorld } from "../../support/peer-world.ts";
import type { Promises } from "../promises.ts";

const LONG = { deadlineMs: 20_000 };
const POST = { method: "POST", path: "/", body: "x" } as const;

/** Beyond the deadline, a busy machine may need some time to say so. */
const SLACK_MS = 5_000;

async function timed(call: Promise<Outcome>): Promise<{ outcome: Outcome; tookMs: number }> {
  const began = systemClock.monotonic();
  const outcome = await call;
  return { outcome, tookMs: systemClock.monotonic() - began };
}

export const deadlinePromises: Promises<TransportWorld> = {
  "a peer that does not answer by the deadline leaves the call unknown": async ({ transport, listen }) => {
    const peer = await listen(() => "is silent");
    const { outcome, tookMs } = await timed(transport.call(peer.url, POST, { deadlineMs: 600 }));
    assert.ok(outcome.outcome === "unknown" && outcome.late, JSON.stringify(outcome));
    assert.equal(peer.received.length, 1, "the call was sent and waited for");
    assert.ok(tookMs >= 590 && tookMs < 600 + SLACK_MS, `took ${tookMs} ms`);
  },

  "the deadline is for the whole reply: one that comes drop by drop does not prolong it": async (world) => {
    const peer = await world.listen(() => "drips");
    const { outcome, tookMs } = await timed(world.transport.call(peer.url, POST, { deadlineMs: 150 }));
    assert.equal(outcome.outcome, "unknown", JSON.stringify(outcome));
    assert.ok(tookMs < 150 + SLACK_MS, `took ${tookMs} ms`);
  },

  "after a call ran into its deadline the next ones get their own replies": async ({ transport, listen }) => {
    const peer = await listen(({ path, body }) =>
      path === "/drips" ? "drips" : path === "/silent" ? "is silent" : { status: 200, body },
    );
    for (const path of ["/drips", "/silent"]) {
      const given = transport.call(peer.url, { method: "GET", path }, { deadlineMs: 50 });
      assert.equal((await given).outcome, "unknown");
      for (const body of ["one", "two"]) {
        const outcome = await transport.call(peer.url, { method: "POST", path: "/", body }, LONG);
        assert.ok(outcome.outcome === "reply", JSON.stringify(outcome));
        assert.equal(outcome.body, body);
      }
    }
  },

  "a call that is called off beforehand is refused and reaches nobody": async ({ transport, listen }) => {
    const peer = await listen(() => ({ status: 200 }));
    const outcome = await transport.call(peer.url, POST, { ...LONG, signal: AbortSignal.abort() });
    assert.equal(outcome.outcome, "refused", JSON.stringify(outcome));
    assert.equal((await transport.call(peer.url, POST, LONG)).outcome, "reply");
    assert.equal(peer.received.length, 1);
  },

  "a call that is called off under way ends at once, as unknown": async ({ transport, listen }) => {
    for (const behaviour of ["is silent", "drips"] as const) {
      const peer = await listen(() => behaviour);
      const off = new AbortController();
      const call = timed(transport.call(peer.url, POST, { ...LONG, signal: off.signal }));
      await reached(peer, 1);
      off.abort();
      const { outcome, tookMs } = await call;
      assert.equal(outcome.outcome, "unknown", JSON.stringify(outcome));
      assert.ok(tookMs < SLACK_MS, `took ${tookMs} ms`);
    }
  },

  "calling off a call that is over changes nothing": async ({ transport, listen }) => {
    const peer = await listen(() => ({ status: 200, body: "done" }));
    const off = new AbortController();
    const call = transport.call(peer.url, POST, { ...LONG, signal: off.signal });
    const outcome = await call;
    off.abort();
    assert.ok(outcome.outcome === "reply");
    assert.equal((await transport.call(peer.url, POST, LONG)).outcome, "reply");
  },
};
