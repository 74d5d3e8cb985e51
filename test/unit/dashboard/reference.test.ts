import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { exampleOf } from "../../../dashboard/src/reference/example.ts";

describe("the body that the API reference begins with", () => {
  it("has what must be there, with values of the right types", () => {
    const schema = {
      type: "object",
      required: ["name", "count", "kind", "list", "on"],
      properties: {
        name: { type: "string" },
        count: { type: "integer", minimum: 3 },
        kind: { enum: ["a", "b"] },
        list: { anyOf: [{ type: "array", items: { type: "number" } }, { type: "null" }] },
        on: { type: ["boolean", "null"] },
        rest: { type: "string" },
      },
    };
    assert.deepEqual(exampleOf(schema), { name: "", count: 3, kind: "a", list: [0], on: false });
  });
});
