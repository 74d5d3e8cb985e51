import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import { z } from "zod";
import { JOB_ID } from "../../../../src/api/bodies/fields.ts";
import { jsonSchema } from "../../../../src/api/schema/operation-schema.ts";
import { isJobId } from "../../../../src/core/ids.ts";
import { nestedDeeperThan } from "../../../../src/api/schema/json-body.ts";

describe("the pattern of a job id", () => {
  it("accepts exactly what the core takes for one", () => {
    const uuid = fc.uuid();
    const name = fc.string({ unit: fc.constantFrom("a", "Z", "0", "-", ".", "_", " ", "é"), maxLength: 70 });
    const text = fc.oneof(
      fc.tuple(name, uuid).map(([prefix, id]) => `${prefix}-${id}`),
      fc.tuple(uuid, uuid).map(([prefix, id]) => `${prefix}-${id}`),
      fc.tuple(name, uuid).map(([prefix, id]) => `${prefix}${id}`),
      fc.tuple(name, uuid).map(([prefix, id]) => `${prefix}-${id.toUpperCase()}`),
      fc.tuple(name, uuid).map(([prefix, id]) => `${prefix}-${id}\n`),
      fc.string(),
    );
    fc.assert(
      fc.property(text, (candidate) => assert.equal(JOB_ID.test(candidate), isJobId(candidate), candidate)),
      { numRuns: 2_000 },
    );
  });
});

describe("a JSON Schema made of zod", () => {
  it("says of a nullable field in one type list what zod says in two branches", () => {
    const schema = jsonSchema(
      z.object({
        text: z.string().nullable(),
        choice: z.enum(["a", "b"]).nullable(),
        thing: z.looseObject({ code: z.string() }).nullable().meta({ description: "d" }),
      }),
      "output",
    );
    assert.deepEqual(schema["properties"], {
      text: { type: ["string", "null"] },
      choice: { type: ["string", "null"], enum: ["a", "b", null] },
      thing: {
        type: ["object", "null"],
        properties: { code: { type: "string" } },
        required: ["code"],
        additionalProperties: {},
        description: "d",
      },
    });
  });

  it("keeps real alternatives", () => {
    const schema = jsonSchema(z.union([z.string(), z.array(z.string())]), "input");
    assert.deepEqual(schema["anyOf"], [{ type: "string" }, { type: "array", items: { type: "string" } }]);
  });
});

describe("the depth of a JSON text", () => {
  const depthOf = (value: unknown): number =>
    value === null || typeof value !== "object" ? 0 : 1 + Math.max(0, ...Object.values(value).map(depthOf));

  it("is seen without parsing, whatever stands in texts and keys", () => {
    const stringUnit = fc.constantFrom('"', "\\", "[", "{", "]", "}", "a", "\u2028");
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8, stringUnit }), fc.nat(8), (value, max) => {
        const spaced = JSON.stringify(value, null, 1);
        assert.equal(nestedDeeperThan(spaced, max), depthOf(value) > max);
      }),
      { numRuns: 2_000 },
    );
  });

  it("of broken text is judged without running off its end", () => {
    for (const text of ['"'.repeat(99), '"\\', `${" ".repeat(99)}"\\`, "]".repeat(99), '{"a":"'.repeat(99)]) {
      assert.equal(nestedDeeperThan(text, 64), false);
    }
  });
});
