import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import type { NodeName } from "../../../../src/core/ids.ts";
import { clusterKeys } from "../../../../src/transport/signing/cluster-keys.ts";
import { sign, verify } from "../../../../src/transport/signing/signing.ts";
import type { Claims, Signed } from "../../../../src/transport/signing/signing.ts";

const keys = clusterKeys(["the secret of this cluster, number one"]);
const other = clusterKeys(["the secret of this cluster, number two"]);

const CLAIMS: Claims = {
  from: { name: "node-a" as NodeName, incarnation: "0b8f2a8e-1d7c-4a39-9c7e-000000000001" },
  to: "node-b" as NodeName,
  time: 1_767_225_600_000,
  nonce: "0b8f2a8e-1d7c-4a39-9c7e-0000000000ff",
  deadlineMs: 1_500,
  hop: 1,
};
const REQUEST = {
  method: "POST",
  path: "/jobs?internal=1",
  body: '{"task":"hello"}',
  headers: { "Content-Type": "application/json", "idempotency-key": "k-1" },
} as const;

function signed(claims = CLAIMS): Signed & { headers: Record<string, string> } {
  return { ...REQUEST, headers: sign(keys, REQUEST, claims) };
}

function faultOf(request: Parameters<typeof verify>[1], by = keys): string {
  const verified = verify(by, request);
  return verified.valid ? "valid" : verified.fault;
}

describe("a signed call", () => {
  test("is valid, says who sent it, and carries the headers it covers", () => {
    const verified = verify(keys, signed());
    assert.ok(verified.valid);
    assert.deepEqual(verified.claims, CLAIMS);
    assert.deepEqual(verified.headers, { "content-type": "application/json", "idempotency-key": "k-1" });
  });

  test("without receiver and deadline is valid too", () => {
    const claims = { ...CLAIMS, to: null, deadlineMs: null };
    const verified = verify(keys, signed(claims));
    assert.ok(verified.valid);
    assert.deepEqual(verified.claims, claims);
  });

  test("is found out when anything about it was altered", () => {
    const good = signed();
    const set = (name: string, value: string) => ({ ...good, headers: { ...good.headers, [name]: value } });
    for (const [what, altered] of Object.entries({
      method: { ...good, method: "PUT" },
      path: { ...good, path: "/jobs" },
      query: { ...good, path: "/jobs?internal=2" },
      body: { ...good, body: '{"task":"hellp"}' },
      "cut body": { ...good, body: good.body.slice(0, -1) },
      sender: set("x-baton-from", "node-c"),
      incarnation: set("x-baton-incarnation", "0b8f2a8e-1d7c-4a39-9c7e-000000000002"),
      receiver: set("x-baton-to", "node-c"),
      time: set("x-baton-time", String(CLAIMS.time + 1)),
      nonce: set("x-baton-nonce", "0b8f2a8e-1d7c-4a39-9c7e-0000000000fe"),
      deadline: set("x-baton-deadline-ms", "9000"),
      hop: set("x-baton-hop", "0"),
      "a covered header": set("idempotency-key", "k-2"),
      "a list of covered headers": set("x-baton-covered", "content-type"),
      "an added header": set("authorization", "Bearer x"),
      "an added header of ours": set("x-baton-config", "abc"),
      signature: set(
        "x-baton-signature",
        good.headers["x-baton-signature"]!.replace(/^./, (c) => (c === "A" ? "B" : "A")),
      ),
    })) {
      assert.equal(faultOf(altered), "bad_signature", what);
    }
    const { "x-baton-to": _to, ...without } = good.headers;
    assert.equal(faultOf({ ...good, headers: without }), "bad_signature", "receiver taken away");
  });

  test("may gain headers of proxies on its way", () => {
    const good = signed();
    const headers = { ...good.headers, host: "b:1", via: "1.1 p", "user-agent": "x", "content-length": "16" };
    assert.equal(faultOf({ ...good, headers }), "valid");
  });

  test("with a header of the wrong shape, or sent twice, is malformed", () => {
    const good = signed();
    for (const [name, value] of [
      ["x-baton-from", ""],
      ["x-baton-from", "a b"],
      ["x-baton-from", "node-a, node-a"],
      ["x-baton-time", "-1"],
      ["x-baton-time", "1e9"],
      ["x-baton-time", "9".repeat(400)],
      ["x-baton-nonce", "short"],
      ["x-baton-hop", "1.5"],
      ["x-baton-key", "../../x"],
      ["x-baton-covered", "a\nb"],
      ["x-baton-signature", ""],
      ["x-baton-signature", "zz"],
      ["x-baton-signature", "ü".repeat(43)],
    ] as const) {
      assert.equal(
        faultOf({ ...good, headers: { ...good.headers, [name]: value } }),
        "malformed",
        `${name}: ${value}`,
      );
    }
    const twice = ["node-a", "node-a"];
    assert.equal(faultOf({ ...good, headers: { ...good.headers, "x-baton-from": twice } }), "malformed");
    for (const name of ["x-baton-from", "x-baton-time", "x-baton-nonce", "x-baton-hop", "x-baton-key"]) {
      assert.equal(faultOf({ ...good, headers: { ...good.headers, [name]: undefined } }), "malformed", name);
    }
  });

  test("of another secret is told apart from an altered one, and both keys are named", () => {
    const verified = verify(other, signed());
    assert.ok(!verified.valid);
    assert.equal(verified.fault, "unknown_key");
    assert.ok(verified.reason.includes(keys.first.id) && verified.reason.includes(other.first.id));
    assert.match(verified.reason, /cluster\.secret/);
  });

  test("is missing its signature when it has none", () => {
    assert.equal(faultOf({ ...REQUEST, headers: {} }), "missing");
  });

  test("never makes the verifier throw, whatever the headers are", () => {
    const names = Object.keys(signed().headers);
    const value = fc.oneof(fc.string(), fc.array(fc.string()), fc.constant(undefined));
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), value), (headers) => {
        const good = signed().headers;
        const verified = verify(keys, { ...REQUEST, headers: { ...good, ...headers } });
        const untouched = Object.entries(headers).every(([name, each]) => each === good[name]);
        assert.equal(verified.valid, untouched);
      }),
    );
  });
});

describe("the keys of a cluster", () => {
  test("change one node after the other: the first signs, and both are accepted", () => {
    const [old, fresh] = ["an old secret of this cluster, long", "a fresh secret of this cluster, long"];
    const before = clusterKeys([old]);
    const both = clusterKeys([old, fresh]);
    const turned = clusterKeys([fresh, old]);
    const after = clusterKeys([fresh]);
    const accepts = (from: typeof keys, by: typeof keys) =>
      verify(by, { ...REQUEST, headers: sign(from, REQUEST, CLAIMS) }).valid;
    for (const [one, two] of [
      [before, both],
      [both, turned],
      [turned, after],
    ] as const) {
      assert.ok(accepts(one, two) && accepts(two, one));
    }
    assert.ok(!accepts(before, after) && !accepts(after, before));
  });

  test("need one secret or two", () => {
    for (const secrets of [[], [""], ["  "], ["a", ""], ["a", "b", "c"]]) {
      assert.throws(() => clusterKeys(secrets), { code: "BAD_CONFIG", message: /cluster\.secret/ });
    }
  });

  test("do not show the secret", () => {
    assert.ok(!JSON.stringify([keys.first.id, ...keys.accepted.keys()]).includes("secret"));
    assert.notEqual(keys.first.id, other.first.id);
  });
});
