import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import { DueQueue } from "../../../../src/jobs/schedules/due-queue.ts";

describe("DueQueue", () => {
  it("behaves like a sorted list, whatever is set, deleted and taken", () => {
    const name = fc.integer({ min: 0, max: 20 }).map(String);
    const step = fc.oneof(
      fc.record({ do: fc.constant("set" as const), name, at: fc.integer({ min: 0, max: 1_000 }) }),
      fc.record({ do: fc.constant("delete" as const), name }),
      fc.record({ do: fc.constant("take" as const), now: fc.integer({ min: 0, max: 1_000 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const queue = new DueQueue();
        const model = new Map<string, number>();
        for (const one of steps) {
          if (one.do === "set") {
            queue.set(one.name, one.at);
            model.set(one.name, one.at);
          } else if (one.do === "delete") {
            queue.delete(one.name);
            model.delete(one.name);
          } else {
            const due = [...model].filter(([, at]) => at <= one.now);
            const taken = queue.take(one.now);
            const found = taken.map((name) => model.get(name));
            const expected = due.map(([, at]) => at).sort((a, b) => a - b);
            assert.deepEqual(found, expected);
            assert.deepEqual(new Set(taken), new Set(due.map(([name]) => name)));
            for (const name of taken) model.delete(name);
          }
          assert.equal(queue.size, model.size);
          assert.equal(queue.nextAt(), model.size === 0 ? null : Math.min(...model.values()));
        }
      }),
    );
  });

  it("stays small while one name is moved over and over", () => {
    const queue = new DueQueue();
    queue.set("late", 1e9);
    for (let at = 0; at < 100_000; at++) queue.set("busy", at);
    assert.equal(queue.size, 2);
    assert.deepEqual(queue.take(2e9), ["busy", "late"]);
  });
});
