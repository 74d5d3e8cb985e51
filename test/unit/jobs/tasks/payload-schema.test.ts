import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { z } from "zod";
import { payloadSchema } from "../../../../src/jobs/tasks/payload-schema.ts";

type Standard = StandardSchemaV1["~standard"];
const standard: Standard = { version: 1, vendor: "test", validate: (value) => ({ value }) };

describe("the JSON Schema of a payload", () => {
  it("comes from zod, as a caller writes the payload", () => {
    const schema = payloadSchema(z.object({ to: z.string(), retries: z.int().min(0).default(3) }));
    assert.equal(schema!["type"], "object");
    assert.deepEqual(schema!["required"], ["to"]);
    assert.equal(schema!["$schema"], undefined);
  });

  it("comes from zod also where a part of it cannot be said", () => {
    const schema = payloadSchema(z.object({ at: z.date(), name: z.string() }));
    assert.deepEqual(Object.keys(schema!["properties"] as object), ["at", "name"]);
  });

  it("comes from any library that keeps the extension of the standard, or has a way of its own", () => {
    const extended = { "~standard": { ...standard, jsonSchema: { input: () => ({ type: "string" }) } } };
    assert.deepEqual(payloadSchema(extended), { type: "string" });
    const own = { "~standard": standard, toJsonSchema: () => ({ type: "number" }) };
    assert.deepEqual(payloadSchema(own), { type: "number" });
  });

  it("is null where there is none, or where it is too large or broken", () => {
    assert.equal(payloadSchema(undefined), null);
    assert.equal(payloadSchema({ "~standard": standard }), null);
    const throws = {
      "~standard": standard,
      toJsonSchema: () => {
        throw new Error("no");
      },
    };
    assert.equal(payloadSchema(throws), null);
    const large = { "~standard": standard, toJsonSchema: () => ({ description: "x".repeat(100_000) }) };
    assert.equal(payloadSchema(large), null);
  });
});
