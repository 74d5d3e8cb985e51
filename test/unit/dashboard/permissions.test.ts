import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NEEDS } from "../../../dashboard/src/api/permissions.ts";
import { OPERATIONS } from "../../../src/api/operation-table.ts";

describe("what the page thinks one needs", () => {
  it("is what the table of operations says", () => {
    const rows = new Map(OPERATIONS.map(({ method, path, permission }) => [`${method} ${path}`, permission]));
    const told = Object.fromEntries(Object.keys(NEEDS).map((route) => [route, rows.get(route)]));
    assert.deepEqual(NEEDS, told);
  });
});
