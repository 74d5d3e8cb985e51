import type { TestContext } from "node:test";

const steps = new WeakMap<TestContext, (() => unknown)[]>();

/**
 * Cleans up at the end of the test, the last thing first: a node is gone before its directory is. `t.after` itself goes
 * the other way round, and stops at the first step that fails.
 */
export function atEnd(t: TestContext, step: () => unknown): void {
  const known = steps.get(t);
  if (known) {
    known.push(step);
    return;
  }
  const all = [step];
  steps.set(t, all);
  t.after(async () => {
    const failures: unknown[] = [];
    for (const each of all.reverse()) {
      try {
        await each();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, "the test did not clean up behind itself");
  });
}
