/** What happened to a cluster, and how long each time until it was whole again. */

import type { Scope } from "../test/support/node-cleanup.ts";
import { percentile } from "./statistics.ts";
import { markdown } from "./table.ts";

export interface FailoverEvent {
  readonly what: string;
  readonly tookMs: readonly number[];
  /** As it is told; nothing is judged here. */
  readonly target?: string;
}

export interface FailoverOptions {
  readonly kills: number;
  readonly stops: number;
  readonly pauses: number;
  /** Ends with the run, and takes nodes and directories with it. */
  readonly scope: Scope;
  /** Progress, for people. */
  readonly say: (text: string) => void;
}

export type Failover = (options: FailoverOptions) => Promise<readonly FailoverEvent[]>;

/** The same again and again, one after the other. */
export async function repeat(
  times: number,
  what: string,
  { say }: Pick<FailoverOptions, "say">,
  once: () => Promise<number>,
): Promise<number[]> {
  const tookMs: number[] = [];
  for (let n = 1; n <= times; n++) {
    tookMs.push(await once());
    say(`  ${what} ${n} of ${times}: ${tookMs.at(-1)!.toFixed(0)} ms`);
  }
  return tookMs;
}

export function eventTable(events: readonly FailoverEvent[]): string {
  const rows = events.map(({ what, tookMs, target = "" }) => {
    const at = (share: number): string =>
      tookMs.length === 0 ? "–" : `${percentile(tookMs, share).toFixed(0)} ms`;
    return [what, String(tookMs.length), at(0.5), at(0.99), at(1), target];
  });
  return markdown(["event", "times", "p50", "p99", "max", "target"], rows, new Set([1, 2, 3, 4]));
}
