import type { Clock } from "../../platform/clock.ts";
import type { ClockSample } from "./judge-clocks.ts";

/** The first call opens a connection and is slow; of some more, one is quick. */
const SAMPLES = 3;

/** Their clock, read a few times. */
export async function sampleClock(clock: Clock, read: () => Promise<number>): Promise<ClockSample[]> {
  const samples: ClockSample[] = [];
  for (let each = 0; each < SAMPLES; each++) {
    const [sentAt, began] = [clock.now(), clock.monotonic()];
    const theirs = await read();
    samples.push({ sentAt, receivedAt: sentAt + (clock.monotonic() - began), theirs });
  }
  return samples;
}
