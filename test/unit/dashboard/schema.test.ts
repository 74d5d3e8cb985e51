import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { z } from "zod";
import { beginWith, controlFor, hintOf } from "../../../dashboard/src/parts/schema.ts";
import type { Schema } from "../../../dashboard/src/parts/schema.ts";

function schemaOf(type: z.ZodType): Schema {
  return z.toJSONSchema(type, { io: "input" }) as Schema;
}

describe("a form made from a schema", () => {
  it("has a control for each simple type, and JSON for the rest", () => {
    const kinds = (type: z.ZodType): string => controlFor(schemaOf(type)).kind;
    assert.equal(kinds(z.string()), "text");
    assert.equal(kinds(z.int()), "number");
    assert.equal(kinds(z.number().min(1)), "number");
    assert.equal(kinds(z.boolean()), "boolean");
    assert.equal(kinds(z.enum(["a", "b"])), "choice");
    assert.equal(kinds(z.literal(3)), "choice");
    assert.equal(kinds(z.object({ a: z.string() })), "group");
    assert.equal(kinds(z.array(z.string())), "json");
    assert.equal(kinds(z.union([z.string(), z.number()])), "json");
    assert.equal(kinds(z.record(z.string(), z.string())), "json");
    assert.equal(kinds(z.unknown()), "json");
  });

  it("shows what may be null as if it could not", () => {
    assert.equal(controlFor(schemaOf(z.string().nullable())).kind, "text");
    assert.equal(controlFor({ type: ["integer", "null"] }).kind, "number");
  });

  it("gives long texts room, and addresses one line", () => {
    assert.deepEqual(controlFor(schemaOf(z.string())), { kind: "text", lines: true });
    assert.deepEqual(controlFor(schemaOf(z.string().max(40))), { kind: "text", lines: false });
    assert.deepEqual(controlFor(schemaOf(z.url())), { kind: "text", lines: false });
  });

  it("writes JSON where groups stand in groups without end", () => {
    const deep = schemaOf(z.object({ a: z.object({ b: z.object({ c: z.object({ d: z.string() }) }) }) }));
    const inner = (schema: Schema, name: string): Schema => schema.properties![name]!;
    const third = inner(inner(inner(deep, "a"), "b"), "c");
    assert.equal(controlFor(deep, 0).kind, "group");
    assert.equal(controlFor(third, 3).kind, "json");
  });

  it("begins with the defaults and with what cannot be otherwise", () => {
    const schema = schemaOf(
      z.object({
        text: z.string(),
        width: z.int().default(800),
        kind: z.literal("resize"),
        loud: z.boolean(),
        deep: z.object({ level: z.int().default(1) }),
      }),
    );
    assert.deepEqual(beginWith(schema), { width: 800, kind: "resize", loud: false, deep: { level: 1 } });
  });

  it("says in words what a field takes", () => {
    assert.equal(hintOf(schemaOf(z.int().min(1).max(4_000))), "a whole number, from 1 to 4000");
    assert.equal(hintOf(schemaOf(z.int())), "a whole number");
    assert.equal(hintOf(schemaOf(z.string().max(10).describe("a name"))), "a name, at most 10 characters");
  });
});
