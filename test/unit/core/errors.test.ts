import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "../../support/fast-check.ts";
import { BatonError, ERRORS, hasCode, nearest } from "../../../src/core/errors.ts";

describe("the table of errors", () => {
  test("has codes in capitals and statuses of failures, and 5xx that a caller sees may be tried again", () => {
    for (const [code, { status }] of Object.entries(ERRORS)) {
      assert.match(code, /^[A-Z]+(_[A-Z]+)*$/);
      assert.ok(status >= 400 && status < 600, code);
    }
    for (const code of ["STORE_UNAVAILABLE", "DRAINING", "NO_LEADER", "DEADLINE"] as const) {
      assert.equal(ERRORS[code].retryable, true, code);
    }
    for (const code of ["STALE_EPOCH", "BAD_REQUEST", "LOOP"] as const) {
      assert.equal(ERRORS[code].retryable, false, code);
    }
  });
});

describe("an error", () => {
  test("is known by its code, not by its text", () => {
    const error: unknown = new BatonError("BAD_ID", "NOT_FOUND", { field: "id" });
    assert.ok(hasCode(error, "BAD_ID"));
    assert.equal(error.details.field, "id");
    assert.ok(!hasCode(error, "NOT_FOUND"));
    assert.ok(!hasCode({ code: "BAD_ID" }, "BAD_ID"));
    assert.ok(!hasCode(undefined, "BAD_ID"));
  });
});

describe("the nearest known name", () => {
  const known = ["concurrency", "port", "host", "lease", "retention"];

  test("is the one with a slip of the pen", () => {
    assert.equal(nearest("concurency", known), "concurrency");
    assert.equal(nearest("prot", known), "port");
    assert.equal(nearest("Leese", known), "lease");
  });

  test("is none when nothing is near", () => {
    assert.equal(nearest("zzzzzz", known), null);
    assert.equal(nearest("x", []), null);
  });

  test("is always a known one, and a known name itself", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 20 }), (text) => {
        const found = nearest(text, known);
        assert.ok(found === null || known.includes(found));
      }),
    );
    for (const name of known) assert.equal(nearest(name, known), name);
  });
});
