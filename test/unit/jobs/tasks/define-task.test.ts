/** What a definition may say. What must not compile is marked, and the compiler checks the marks. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { z } from "zod";
import { BatonError } from "../../../../src/core/errors.ts";
import { type AnyTask, defineTask, taskDefaults } from "../../../../src/jobs/tasks/task.ts";
import { column } from "../../../support/columns.ts";

function refused(definition: object): BatonError {
  try {
    defineTask(definition as AnyTask);
  } catch (error) {
    assert.ok(error instanceof BatonError);
    assert.equal(error.code, "BAD_TASK");
    return error;
  }
  return assert.fail("it was not refused");
}

describe("a task", () => {
  it("is typed by its schema, by its handler or by its type parameters", () => {
    const schema = z.object({ to: z.string(), copies: z.int().default(1) });
    const mail = defineTask({ name: "mail", schema, run: ({ copies }) => copies * 2 });
    const name: "mail" = mail.name;
    const plain = defineTask<{ order: number }, string>({ name: "plain", run: ({ order }) => `${order}` });
    const inferred = defineTask({ name: "inferred", run: (payload: { n: number }) => payload.n });
    assert.deepEqual([name, plain.name, inferred.name], ["mail", "plain", "inferred"]);
    const never = (): void => {
      // @ts-expect-error: the schema has no such field
      defineTask({ name: "a", schema, run: ({ cc }) => cc });
      // @ts-expect-error: it does not result in a text
      defineTask<{ order: number }, string>({ name: "b", run: ({ order }) => order });
      // @ts-expect-error: durations have a unit
      defineTask({ name: "c", timeout: "5", run: () => {} });
      // @ts-expect-error: it is named timeout
      defineTask({ name: "d", timeoutMs: 5, run: () => {} });
    };
    assert.equal(typeof never, "function");
  });

  it("says durations as people write them", () => {
    const retry = { attempts: 8, delay: "5s", maxDelay: 60_000, factor: 3 } as const;
    const task = defineTask({ name: "a", timeout: "1.5m", retry, run: () => {} });
    assert.deepEqual(taskDefaults(task), {
      maxAttempts: 8,
      timeoutMs: 90_000,
      retry: { delayMs: 5_000, maxDelayMs: 60_000, factor: 3 },
    });
    const silent = defineTask({ name: "b", run: () => {} });
    assert.deepEqual(taskDefaults(silent), { maxAttempts: undefined, timeoutMs: undefined, retry: {} });
  });

  it("is refused with all that is wrong, each with its field and the nearest name", () => {
    const retry = { attempts: 0, firstDelayMs: 5, delay: "5", jitter: 2, dellay: 1 };
    const error = refused({
      name: "mail",
      run: 5,
      timeoutMs: 5,
      priority: 101,
      isolation: "process",
      retry,
      schema: {},
      maxAttempts: 3,
    });
    const fields = "run timeoutMs isolation schema maxAttempts priority";
    const ofRetry = "retry.attempts retry.firstDelayMs retry.delay retry.jitter retry.dellay";
    assert.deepEqual(column(error.issues, "field"), `${fields} ${ofRetry}`.split(" "));
    const messages = new Map(error.issues.map(({ field, message }) => [field, message]));
    assert.match(messages.get("timeoutMs")!, /^task mail: .*did you mean "timeout"\?/);
    assert.match(messages.get("retry.dellay")!, /did you mean "delay"\?/);
    assert.match(messages.get("retry.delay")!, /retry\.delay needs a unit: write 5s or 5ms/);
    assert.match(messages.get("retry.firstDelayMs")!, /known are attempts, delay, factor/);
    assert.deepEqual(column(refused({ name: "a b", run: () => {} }).issues, "field"), ["name"]);
  });
});
