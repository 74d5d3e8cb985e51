import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext } from "node:test";

/** Whatever has an end at which to clean up: a test, or a suite. */
export type Scope = Pick<TestContext, "after">;

const steps = new WeakMap<Scope, (() => unknown)[]>();

/**
 * Cleans up at the end of the test, the last thing first: a node is gone before its directory is. `t.after` itself goes
 * the other way round, and stops at the first step that fails.
 */
export function atEnd(t: Scope, step: () => unknown): void {
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

/** For what several tests of a suite share. To be called in the body of its `describe`. */
export function suiteScope(): Scope {
  const ending: (() => unknown)[] = [];
  after(async () => {
    for (const step of ending) await step();
  });
  return { after: (step) => void ending.push(step as () => unknown) };
}

/** A directory that is there until the tests of the file, or of the suite that calls this, are over. */
export function suiteDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "baton-test-"));
  after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
