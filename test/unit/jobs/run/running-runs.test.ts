import assert from "node:assert/strict";
import { it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import type { JobRun } from "../../../../src/jobs/run/job-run.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { RunningRuns } from "../../../../src/jobs/run/running-runs.ts";

const runOf = (id: number): JobRun =>
  ({ claimed: { id: String(id) }, place: -1, deadline: Infinity }) as unknown as JobRun;

it("runs begin and end in any order, and those that run are the ones that are found", () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 9 }), { maxLength: 60 }), (steps) => {
      const running = new RunningRuns(new ManualClock(), () => {});
      const expected = new Map<number, JobRun>();
      const ended: JobRun[] = [];
      for (const id of steps) {
        const run = expected.get(id);
        if (run) {
          running.delete(run);
          expected.delete(id);
          ended.push(run);
        } else {
          expected.set(id, runOf(id));
          running.add(expected.get(id)!);
        }
        assert.equal(running.size, expected.size);
        assert.deepEqual(new Set(running.all()), new Set(expected.values()));
        for (const each of expected.values()) {
          assert.ok(running.has(each));
          assert.equal(running.of(each.claimed.id), each);
        }
        for (const each of ended) assert.ok(!running.has(each), "one that has ended is not found");
      }
    }),
  );
});
