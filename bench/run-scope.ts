/** What a measurement has started, and how it is ended. */

import { constants } from "node:os";
import type { Scope } from "../test/support/node-cleanup.ts";

/** The process ends with the first of these signals, as a shell reports it, after the cleaning up. */
export function endWithSignals(cleanUp: () => Promise<void> = async () => {}): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void cleanUp().finally(() => process.exit(128 + constants.signals[signal])));
}

/** Runs something with a scope that ends with it, or with a signal, and takes nodes, servers and directories with it. */
export async function withScope<Result>(run: (scope: Scope) => Promise<Result>): Promise<Result> {
  const steps: (() => unknown)[] = [];
  const cleanUp = async (): Promise<void> => {
    for (const step of steps.splice(0).reverse()) await step();
  };
  endWithSignals(cleanUp);
  try {
    return await run({ after: (step) => void steps.push(step as () => unknown) });
  } finally {
    await cleanUp();
  }
}
