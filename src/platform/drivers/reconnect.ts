import type { Clock } from "../clock.ts";
import { Backoff } from "../loop.ts";
import type { Random } from "../random.ts";

const FIRST_PAUSE_MS = 10;
/** Longer, and a cluster takes longer to gather after its server has come back. */
const PAUSE_MS_MAX = 1_000;

/** Connects anew after a loss, with pauses that grow and are spread, until it succeeds or is called off. */
export async function reconnect(
  connect: () => Promise<void>,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  signal: AbortSignal,
): Promise<void> {
  const backoff = new Backoff(FIRST_PAUSE_MS, PAUSE_MS_MAX);
  while (!signal.aborted) {
    try {
      await connect();
      return;
    } catch {
      await clock.sleep(backoff.next() * (0.5 + random.chance()), signal);
    }
  }
}
