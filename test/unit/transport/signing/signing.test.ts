import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import type { NodeName } from "../../../../src/core/ids.ts";
import { clusterKeys, sign, verify, type Claims } from "../../../../src/transport/signing/signing.ts";

const keys = clusterKeys(["the secret of this cluster, number one"]);
const other = clusterKeys(["the secret of this cluster, number two"]);

const CLAIMS: Claims = {
  from: { name: "node-a" as NodeName, incarnation: "0b8f2a8e-1d7c-4a39-9c7e-000000000001" },
  to: "node-b" as NodeName,
  time: 1_767_225_600_000,
  nonce: "0b8f2a8e-1d7c-4a39-9c7e-0000000000ff",
  use: "shared",
};

function faultOf(headers: Parameters<typeof verify>[1], by = keys): string {
  const verified = verify(by, headers);
  return verified.valid ? "valid" : verified.fault;
}

describe("a signed request", () => {
  test("is valid and says who sent it, with and without a receiver", () => {
    for (const claims of [CLAIMS, { ...CLAIMS, to: null }, { ...CLAIMS, use: "single" } as const]) {
      const verified = verify(keys, sign(keys, claims));
      assert.ok(verified.valid);
      assert.deepEqual(verified.claims, claims);
    }
  });

  test("is found out when anything about it was altered", () => {
    const good = sign(keys, CLAIMS);
    for (const [name, value] of Object.entries({
      "x-baton-from": "node-c",
      "x-baton-incarnation": "0b8f2a8e-1d7c-4a39-9c7e-000000000002",
      "x-baton-to": "node-c",
      "x-baton-time": String(CLAIMS.time + 1),
      "x-baton-nonce": "0b8f2a8e-1d7c-4a39-9c7e-0000000000fe",
      "x-baton-use": "single",
      "x-baton-signature": good["x-baton-signature"]!.replace(/^./, (c) => (c === "A" ? "B" : "A")),
    }))
      assert.equal(faultOf({ ...good, [name]: value }), "bad_signature", name);
    const { "x-baton-to": _to, ...without } = good;
    assert.equal(faultOf(without), "bad_signature", "receiver taken away");
  });

  test("may gain headers of proxies on its way", () => {
    const headers = { ...sign(keys, CLAIMS), host: "b:1", via: "1.1 p", "user-agent": "x" };
    assert.equal(faultOf(headers), "valid");
  });

  test("with a header of the wrong shape, or sent twice, is malformed", () => {
    const good = sign(keys, CLAIMS);
    for (const [name, value] of [
      ["x-baton-from", ""],
      ["x-baton-from", "a b"],
      ["x-baton-from", "node-a, node-a"],
      ["x-baton-time", "-1"],
      ["x-baton-time", "1e9"],
      ["x-baton-time", "9".repeat(400)],
      ["x-baton-nonce", "short"],
      ["x-baton-use", "other"],
      ["x-baton-key", "../../x"],
      ["x-baton-signature", ""],
      ["x-baton-signature", "zz"],
      ["x-baton-signature", "ü".repeat(43)],
    ] as const)
      assert.equal(faultOf({ ...good, [name]: value }), "malformed", `${name}: ${value}`);
    assert.equal(faultOf({ ...good, "x-baton-from": ["node-a", "node-a"] }), "malformed");
    for (const name of ["x-baton-from", "x-baton-time", "x-baton-nonce", "x-baton-use", "x-baton-key"])
      assert.equal(faultOf({ ...good, [name]: undefined }), "malformed", name);
  });

  test("of another secret is told apart from an altered one, and both keys are named", () => {
    const verified = verify(other, sign(keys, CLAIMS));
    assert.ok(!verified.valid);
    assert.equal(verified.fault, "unknown_key");
    assert.ok(verified.reason.includes(keys.first.id) && verified.reason.includes(other.first.id));
    assert.match(verified.reason, /cluster\.secret/);
  });

  test("is missing its signature when it has none", () => {
    assert.equal(faultOf({}), "missing");
  });

  test("never makes the verifier throw, whatever the headers are", () => {
    const good = sign(keys, CLAIMS);
    const names = Object.keys(good);
    const value = fc.oneof(fc.string(), fc.array(fc.string()), fc.constant(undefined));
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), value), (headers) => {
        const verified = verify(keys, { ...good, ...headers });
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
    const accepts = (from: typeof keys, by: typeof keys) => verify(by, sign(from, CLAIMS)).valid;
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
