import { setTimeout as sleep } from "node:timers/promises";

interface Context {
  readonly signal: AbortSignal;
  readonly log: (text: string) => void;
}

/** Runs until it is told to stop, and logs what it was told. */
export default async function hold(_payload: unknown, { signal, log }: Context): Promise<void> {
  log("holding");
  signal.addEventListener("abort", () => log(`told: ${(signal.reason as { why: string }).why}`));
  await sleep(600_000, undefined, { signal });
}
