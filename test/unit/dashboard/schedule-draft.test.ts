import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { draftOf, EMPTY, requestOf, timingOf } from "../../../dashboard/src/screens/schedule-draft.ts";
import type { ScheduleBody } from "../../../src/api/bodies/schedule-body.ts";
import { ScheduleRequestBody } from "../../../src/api/bodies/schedule-body.ts";

const STORED: ScheduleBody = {
  name: "nightly",
  task: "report",
  payload: { of: "today" },
  cron: "30 2 * * *",
  every_ms: null,
  zone: "Europe/Berlin",
  in_words: "at 02:30 every day, Europe/Berlin time",
  queue: "reports",
  priority: 5,
  max_attempts: 2,
  timeout_ms: 60_000,
  missed: "run_all",
  missed_max: 7,
  overlap: "skip",
  paused: true,
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-01T00:00:00.000Z",
  next_at: null,
  last_fired_at: null,
  last_job_id: null,
  leader_epoch: 1,
  origin: "operator",
  note: null,
};

describe("a schedule in the form", () => {
  it("is sent as it was stored when nothing is changed", () => {
    const request = requestOf(draftOf(STORED));
    assert.deepEqual(request, {
      task: "report",
      payload: { of: "today" },
      cron: "30 2 * * *",
      zone: "Europe/Berlin",
      queue: "reports",
      priority: 5,
      max_attempts: 2,
      timeout_ms: 60_000,
      missed: "run_all",
      missed_max: 7,
      overlap: "skip",
    });
    assert.ok(ScheduleRequestBody.safeParse(request).success);
  });

  for (const [ms, every, unit] of [
    [1_500, 1.5, "seconds"],
    [90_000, 90, "seconds"],
    [5_400_000, 90, "minutes"],
    [7_200_000, 2, "hours"],
    [172_800_000, 2, "days"],
  ] as const) {
    it(`has ${ms} ms as ${every} ${unit}, and back`, () => {
      const draft = draftOf({ ...STORED, cron: null, zone: null, every_ms: ms });
      assert.deepEqual([draft.kind, draft.every, draft.unit], ["every", every, unit]);
      assert.deepEqual(timingOf(draft), { every_ms: ms });
    });
  }

  it("has no timing while nothing is typed, and no zone where none is said", () => {
    assert.equal(timingOf({ ...EMPTY, cron: " " }), null);
    assert.equal(timingOf({ ...EMPTY, kind: "every", every: null }), null);
    assert.deepEqual(timingOf({ ...EMPTY, cron: " 0 * * * * ", zone: "" }), { cron: "0 * * * *" });
  });
});
