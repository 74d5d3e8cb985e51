import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import { notPlain } from "../../../../src/jobs/submit/plain-json.ts";

class Point {
  x = 1;
}
class Money {
  toJSON(): string {
    return "1 EUR";
  }
}

describe("a payload that JSON would change", () => {
  const cases: [what: string, value: unknown, path: string, why: RegExp][] = [
    ["a BigInt", { order: { id: 1n } }, ".order.id", /BigInt.*text/],
    ["a Date", { at: new Date(0) }, ".at", /Date.*toISOString/],
    ["an invalid Date in a list", [new Date(Number.NaN)], "[0]", /Date/],
    ["undefined in a list", { rows: [1, undefined] }, ".rows[1]", /undefined.*leave it out/],
    ["a property that is undefined", { to: undefined }, ".to", /undefined/],
    ["a number that is none", { cents: Number.NaN }, ".cents", /NaN/],
    ["an infinite number", Infinity, "", /Infinity/],
    ["a Map", { by: new Map([[1, 2]]) }, ".by", /is a Map/],
    ["a Set", new Set(), "", /is a Set/],
    ["bytes", { file: new Uint8Array(2) }, ".file", /is a Uint8Array/],
    ["a function", { then: () => 1 }, ".then", /is a function/],
    ["a symbol", [Symbol("a")], "[0]", /is a symbol/],
  ];
  for (const [what, value, path, why] of cases) {
    it(`is found: ${what}, with its place`, () => {
      const found = notPlain(value);
      assert.equal(found?.path, path);
      assert.match(found.why, why);
    });
  }

  it("is not one of JSON's own values, nor an object of a class that JSON writes out", () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => assert.equal(notPlain(value), null)));
    const bare: unknown = Object.assign(Object.create(null), { a: 1 });
    for (const value of [new Point(), new Money(), bare, Buffer.from("a")])
      assert.equal(notPlain(value), null);
  });

  it("is looked for once in each part of a value that goes in circles", () => {
    const parts: Record<string, unknown>[] = Array.from({ length: 100 }, () => ({}));
    for (const part of parts) for (const [index, other] of parts.entries()) part[`to${index}`] = other;
    assert.equal(notPlain(parts[0], new Set()), null, "JSON.stringify refuses it");
    parts[99]!["big"] = 1n;
    assert.match(notPlain(parts[0], new Set())!.why, /BigInt/);
  });
});
