/** Which versions of declared schedules have a node that runs. */

import type { NodeInfo } from "../../core/node.ts";
import type { Clock } from "../../platform/clock.ts";

/** A node that restarts is away for so long; nothing is done about its version meanwhile. */
const GONE_AFTER_MS = 60_000;

interface RunningVersionsOptions {
  readonly nodes: () => readonly NodeInfo[];
  /** No other node can have the store: a version that is not there is gone. */
  readonly alone: boolean;
}

export class RunningVersions {
  readonly #clock: Clock;
  readonly #o: RunningVersionsOptions;
  readonly #createdAt: number;
  /** When each was last seen, by the monotonic clock. */
  readonly #seen = new Map<string, number>();
  #present: ReadonlySet<string> = new Set();

  constructor(clock: Clock, options: RunningVersionsOptions) {
    this.#clock = clock;
    this.#o = options;
    this.#createdAt = clock.monotonic();
  }

  /** The nodes that run, of whom the following answers speak. */
  look(): readonly NodeInfo[] {
    const now = this.#clock.monotonic();
    const running = this.#o.nodes().filter(({ alive, status }) => alive && status !== "dead");
    const versions = running.flatMap(({ load }) => load.declares ?? []);
    this.#present = new Set(versions);
    for (const version of versions) this.#seen.set(version, now);
    return running;
  }

  /** One that was never seen may have been there just before this node. */
  has(version: string): boolean {
    if (this.#present.has(version)) return true;
    if (this.#o.alone) return false;
    const seenAt = this.#seen.get(version) ?? this.#createdAt;
    return this.#clock.monotonic() - seenAt < GONE_AFTER_MS;
  }
}
