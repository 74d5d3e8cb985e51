import { setTimeout as sleep } from "node:timers/promises";

/** Does not listen to its signal. */
export default async function deaf(): Promise<void> {
  await sleep(600_000);
}
