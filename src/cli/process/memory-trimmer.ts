import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Clock } from "../../platform/clock.ts";

/** How often it is looked. Shorter, and a quiet moment between two bursts is taken for rest. */
const LOOK_MS = 5_000;
/** A process that uses less of one core than this is at rest. */
const CALM_SHARE = 0.1;
/** Less than this is not worth a pause of about a tenth of a second. */
const GAIN_BYTES_MIN = 24 * 2 ** 20;

type Collect = (options: { type: "major"; execution: "sync"; flavor: "last-resort" }) => void;

/**
 * Gives memory back that the start, or a burst of work, has left behind: the runtime keeps it for the next burst, which for a node
 * that waits may be tomorrow. Once after each burst, when the process is at rest. Returns what ends it.
 */
export function trimMemoryWhenIdle(clock: Clock): () => void {
  // Not by a flag of the process: it would be one for people to set, and for every child.
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as Collect;
  let cpu = process.cpuUsage();
  let lookedAt = clock.monotonic();
  let kept = 0;
  let cancel = clock.after(LOOK_MS, look);

  function look(): void {
    const spent = process.cpuUsage(cpu);
    const passedMs = clock.monotonic() - lookedAt;
    const share = (spent.user + spent.system) / 1_000 / passedMs;
    if (share < CALM_SHARE && process.memoryUsage().heapTotal - kept > GAIN_BYTES_MIN) {
      collect({ type: "major", execution: "sync", flavor: "last-resort" });
      kept = process.memoryUsage().heapTotal;
    }
    cpu = process.cpuUsage();
    lookedAt = clock.monotonic();
    cancel = clock.after(LOOK_MS, look);
  }

  return () => cancel();
}
