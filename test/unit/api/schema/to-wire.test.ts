import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { z } from "zod";
import { fromWire, toWire } from "../../../../src/api/schema/to-wire.ts";

const AT = Date.UTC(2026, 0, 31, 9);
const ISO = "2026-01-31T09:00:00.000Z";

const Body = z.object({
  job_id: z.string(),
  max_attempts: z.int(),
  created_at: z.string(),
  started_at: z.string().nullable(),
  note: z.string().optional(),
  error: z.looseObject({ code: z.string() }).nullable(),
  runs: z.array(z.object({ job_epoch: z.int(), ended_at: z.string().nullable() })),
  load: z.object({ cpu_ms: z.number(), slots: z.int().nullable() }),
});

const job = {
  id: "a-1",
  maxAttempts: 3,
  createdAt: AT,
  startedAt: null,
  error: { code: "ERROR", stackTrace: "as it is" },
  runs: [{ jobEpoch: 1, endedAt: AT }, { jobEpoch: 2 }],
  load: { cpuMs: 1.5 },
};

const body = {
  job_id: "a-1",
  max_attempts: 3,
  created_at: ISO,
  started_at: null,
  note: undefined,
  error: { code: "ERROR", stackTrace: "as it is" },
  runs: [
    { job_epoch: 1, ended_at: ISO },
    { job_epoch: 2, ended_at: null },
  ],
  load: { cpu_ms: 1.5, slots: null },
};

describe("a mapper to bodies", () => {
  it("renames, writes times as ISO 8601 and what is missing as null, at every depth", () => {
    assert.deepEqual(toWire(Body, { job_id: "id" })(job), body);
  });

  it("takes a field from another property, or computes it from the whole object", () => {
    const Named = z.object({ name: z.string(), in_words: z.string() });
    const map = toWire(Named, { name: "id", in_words: ({ id }: { id: string }) => `job ${id}` });
    assert.deepEqual(map({ id: "a-1" }), { name: "a-1", in_words: "job a-1" });
  });
});

describe("a mapper from bodies", () => {
  it("is the reverse", () => {
    const map = fromWire(Body, { job_id: "id" });
    assert.deepEqual(map(Body.parse(body)), {
      ...job,
      note: undefined,
      runs: [
        { jobEpoch: 1, endedAt: AT },
        { jobEpoch: 2, endedAt: null },
      ],
      load: { cpuMs: 1.5, slots: null },
    });
  });

  it("keeps to what was given", () => {
    const Query = z.strictObject({
      since: z.string().optional(),
      limit: z.int(),
      kind: z.string().optional(),
    });
    const map = fromWire(Query);
    assert.deepEqual(map({ since: ISO, limit: 5 }), { since: AT, limit: 5 });
    assert.deepEqual(map({ limit: 5, kind: "a" }), { limit: 5, kind: "a" });
  });
});
