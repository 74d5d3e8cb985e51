import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../support/fast-check.ts";
import { isPlainJson, jsonIssues } from "../../../src/core/plain-json.ts";

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
    ["a Map", { by: new Map([[1, 2]]) }, ".by", /a Map/],
    ["a Set", new Set(), "", /a Set/],
    ["bytes", { file: new Uint8Array(2) }, ".file", /a Uint8Array/],
    ["a function", { then: () => 1 }, ".then", /a function/],
    ["a symbol", [Symbol("a")], "[0]", /a symbol/],
  ];
  for (const [what, value, path, why] of cases) {
    it(`is found: ${what}, with its place`, () => {
      assert.equal(isPlainJson(value), false);
      const [issue] = jsonIssues(value, "payload");
      assert.equal(issue?.field, `payload${path}`);
      assert.match(issue.message, why);
    });
  }

  it("is not one of JSON's own values, nor an object of a class that JSON writes out", () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => assert.ok(isPlainJson(value))));
    const bare: unknown = Object.assign(Object.create(null), { a: 1 });
    for (const value of [new Point(), new Money(), bare, Buffer.from("a")])
      assert.ok(isPlainJson(value) && jsonIssues(value, "payload").length === 0);
  });

  it("is looked for once in each part of a value that goes in circles", () => {
    const parts: Record<string, unknown>[] = Array.from({ length: 100 }, () => ({}));
    for (const part of parts) for (const [index, other] of parts.entries()) part[`to${index}`] = other;
    parts[99]!["big"] = 1n;
    assert.ok(jsonIssues(parts[0], "payload").some(({ message }) => /BigInt/.test(message)));
  });
});
