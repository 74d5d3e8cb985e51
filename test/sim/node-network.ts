/** What a simulated node can find out about the process at another address, besides its replies. */

import type { BullyOptions } from "../../src/peers/open-peers.ts";
import type { Clock } from "../../src/platform/clock.ts";
import type { MemoryNetwork } from "../support/memory-network.ts";

/** How soon a process that has ended is watched again. */
const WATCH_AGAIN_MS = 500;

/** Whether a process listens there, for the node at `from`. */
export function probeOf(
  network: MemoryNetwork,
  from: string,
  clock: Clock,
): NonNullable<BullyOptions["probe"]> {
  return (to, deadlineMs) => {
    const late = clock.sleep(deadlineMs).then(() => "silent" as const);
    return Promise.race([late, network.probe(from, to).then((found) => clock.turn().then(() => found))]);
  };
}

/** Yields whenever the process there has ended, as the end of a connection shows it. */
export async function* watchEnds(
  network: MemoryNetwork,
  clock: Clock,
  to: string,
  signal: AbortSignal,
): AsyncGenerator<"broken"> {
  while (!signal.aborted) {
    await network.ended(to, signal);
    await clock.turn();
    if (signal.aborted) return;
    yield "broken";
    await clock.sleep(WATCH_AGAIN_MS, signal);
  }
}
