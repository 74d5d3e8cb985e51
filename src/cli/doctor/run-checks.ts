/**
 * Runs all checks concurrently, each with its own deadline. A check that hangs or fails becomes a finding and delays no
 * other.
 */

import type { Clock } from "../../platform/clock.ts";
import type { Check, DoctorContext } from "./checks.ts";
import type { Finding, Judgement } from "./finding.ts";
import { failed } from "./finding.ts";
import { span } from "../terminal/number-format.ts";

export interface RunChecksOptions {
  readonly clock: Clock;
  readonly deadlineMs: number;
  /** Told of the checks that are still under way. */
  readonly onProgress: (under: readonly string[], done: number) => void;
}

/** In the order of the checks, whichever ends first. */
export async function runChecks(
  checks: readonly Check[],
  patient: DoctorContext,
  { clock, deadlineMs, onProgress }: RunChecksOptions,
): Promise<readonly Finding[]> {
  const under = new Set(checks.map(({ name }) => name));
  onProgress([...under], 0);
  const found = await Promise.all(
    checks.map(async ({ name, run }) => {
      const judgements = await inTime(clock, deadlineMs, async () => run(patient));
      under.delete(name);
      onProgress([...under], checks.length - under.size);
      return judgements.map((judgement): Finding => ({ check: name, ...judgement }));
    }),
  );
  return found.flat();
}

async function inTime(
  clock: Clock,
  deadlineMs: number,
  run: () => Promise<readonly Judgement[]>,
): Promise<readonly Judgement[]> {
  const late = Promise.withResolvers<readonly Judgement[]>();
  const callOff = clock.after(deadlineMs, () =>
    late.resolve([
      failed(
        `no answer within ${span(deadlineMs)}`,
        "something in between swallows it; look longer with --timeout",
      ),
    ]),
  );
  try {
    return await Promise.race([run(), late.promise]);
  } catch (error) {
    return [failed(`the check itself broke: ${String(error)}`, "please report it with this text")];
  } finally {
    callOff();
  }
}
