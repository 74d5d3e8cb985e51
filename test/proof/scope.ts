/** What a proof needs around it: everything that it started is ended, also on a signal, and its verdict is the exit code. */

import type { Scope } from "../support/node-cleanup.ts";

export async function inProof(
  prove: (scope: Scope, say: (text: string) => void) => Promise<readonly string[]>,
): Promise<never> {
  const ending: (() => unknown)[] = [];
  const scope: Scope = { after: (step) => void ending.push(step as () => unknown) };
  const cleanUp = async (): Promise<void> => {
    for (const step of ending.splice(0).reverse()) await step();
  };
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)
    process.once(signal, () => void cleanUp().finally(() => process.exit(code)));
  let code = 0;
  try {
    for (const line of await prove(scope, (text) => process.stderr.write(`${text}\n`))) console.log(line);
  } catch (error) {
    console.error(error);
    code = 1;
  } finally {
    await cleanUp();
  }
  process.exit(code);
}
