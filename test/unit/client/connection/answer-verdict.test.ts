import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CallError } from "../../../../src/client/client-error.ts";
import { judgeAnswer, judgeFailure } from "../../../../src/client/connection/answer-verdict.ts";

function judge(status: number, body: object | string = {}, retryAfterMs: number | null = null) {
  return judgeAnswer({ status, body: typeof body === "string" ? body : JSON.stringify(body), retryAfterMs });
}

describe("what an answer means", () => {
  it("is the caller's when it is one, and when another node would say the same", () => {
    for (const [status, error] of [
      [200, ""],
      [204, ""],
      [400, "BAD_REQUEST"],
      [401, "UNAUTHENTICATED"],
      [403, "FORBIDDEN"],
      [404, "NOT_FOUND"],
      [409, "NOT_FINISHED"],
      [409, "STALE_EPOCH"],
      [422, "FUNCTION_FAILED"],
      [508, "LOOP"],
    ] as const) {
      assert.equal(judge(status, { error }).do, "take", error);
    }
  });

  it("of a node that does not lead, or serves nobody, is a reason to ask whom it names", () => {
    const standby = judge(409, { error: "NOT_LEADER", leader_url: "http://a" });
    assert.deepEqual(
      [standby.do, standby.hints, standby.maybeDone, standby.passes, standby.standby],
      ["next", ["http://a"], false, true, true],
    );
    assert.deepEqual(judge(409, { error: "NOT_LEADER", leader_url: null }).hints, []);
    const worker = judge(421, { error: "NOT_A_GATEWAY", gateways: ["http://a", "http://b"] });
    assert.deepEqual(
      [worker.do, worker.hints, worker.passes],
      ["next", ["http://a", "http://b"], false],
      "waiting does not make it a gateway",
    );
  });

  it("of a full queue asks for a pause before anybody else is asked", () => {
    const full = judge(429, { error: "TOO_MANY_REQUESTS" }, 1_000);
    assert.deepEqual([full.do, full.afterMs, full.maybeDone, full.passes], ["pause", 1_000, false, true]);
  });

  it("with 5xx tells whether the request may have been carried out, and whether to wait", () => {
    const seen = (status: number, body: object | string) => {
      const { do: what, maybeDone, passes } = judge(status, body);
      return [what, maybeDone, passes];
    };
    assert.deepEqual(seen(503, { error: "DRAINING" }), ["next", false, true]);
    assert.deepEqual(seen(503, { error: "CLUSTER_FORMING" }), ["next", false, true]);
    assert.deepEqual(seen(503, { error: "NO_LEADER" }), ["next", false, true]);
    assert.deepEqual(seen(503, { error: "NO_LEADER", outcome: "unknown" }), ["next", true, true]);
    assert.deepEqual(seen(503, { error: "STORE_UNAVAILABLE" }), ["next", true, true]);
    assert.deepEqual(seen(503, { error: "owner_node_unreachable" }), ["next", false, false]);
    assert.deepEqual(seen(504, { error: "DEADLINE" }), ["next", false, false]);
    assert.deepEqual(seen(504, { error: "DEADLINE", outcome: "unknown" }), ["next", true, false]);
    assert.deepEqual(seen(500, { error: "INTERNAL" }), ["next", true, false]);
    assert.deepEqual(seen(502, "<html>"), ["next", true, false], "of something in between");
  });

  it("that did not come is a reason to go on, and to wait if somebody was there before", () => {
    const refused = new CallError("UNREACHABLE", "no connection");
    const broken = new CallError("UNREACHABLE", "it broke", { maybeDone: true });
    const seen = (error: CallError, wasThere: boolean) => {
      const { do: what, maybeDone, passes } = judgeFailure(error, wasThere);
      return [what, maybeDone, passes];
    };
    assert.deepEqual(seen(refused, false), ["next", false, false]);
    assert.deepEqual(seen(refused, true), ["next", false, true]);
    assert.deepEqual(seen(broken, true), ["next", true, true]);
    assert.deepEqual(seen(new CallError("TIMEOUT", "", { maybeDone: true }), true), ["next", true, true]);
    assert.equal(judgeFailure(new CallError("ABORTED", ""), true).do, "take");
  });
});
