/**
 * Measures how busy this process is, twice a second: CPU, memory, delay of the event loop and traffic. The result can
 * be read at any time.
 */

import { availableParallelism, totalmem } from "node:os";
import type { NodeLoad, NodeTraffic } from "../core/node.ts";
import type { Clock } from "../platform/clock.ts";
import type { NodeState } from "../platform/node-state.ts";
import { Lifecycle } from "../platform/service.ts";
import type { Traffic } from "./traffic.ts";

const SAMPLE_MS = 500;

export interface LoadMeterOptions {
  readonly clock: Clock;
  readonly state: Pick<NodeState, "readings">;
  /** What does not change. */
  readonly capacity: Pick<NodeLoad, "slots" | "serves">;
  readonly traffic: Pick<Traffic, "read">;
  /** Twice a second, with how late the event loop was. */
  readonly onSample: (lagMs: number) => void;
  readonly supervised?: () => NodeLoad["supervised"] | null;
}

export class LoadMeter extends Lifecycle {
  readonly #o: LoadMeterOptions;
  #cancel: () => void = () => {};
  #cpuMicros = 0;
  #at = 0;
  #cpu = 0;
  #memory = 0;
  #lagMs = 0;
  #traffic: NodeTraffic | null = null;

  constructor(options: LoadMeterOptions) {
    super();
    this.#o = options;
  }

  read(): NodeLoad {
    const { running, connections, owned, reach } = this.#o.state.readings;
    const supervised = this.#o.supervised?.();
    return {
      jobs: running(),
      connections: connections(),
      cpu: this.#cpu,
      memory: this.#memory,
      loopLagMs: this.#lagMs,
      ...owned(),
      ...this.#o.capacity,
      ...(this.#traffic && { traffic: this.#traffic }),
      reach: reach(),
      ...(supervised && { supervised }),
    };
  }

  protected onStart(): void {
    this.#at = this.#o.clock.monotonic();
    this.#cpuMicros = cpuMicros();
    this.#memory = memoryShare();
    this.#traffic = this.#o.traffic.read();
    this.#schedule();
  }

  protected onStop(): void {
    this.#cancel();
  }

  #schedule(): void {
    this.#cancel = this.#o.clock.after(SAMPLE_MS, () => this.#sample());
  }

  #sample(): void {
    const now = this.#o.clock.monotonic();
    const passedMs = Math.max(1, now - this.#at);
    const spent = cpuMicros();
    this.#cpu = round(Math.min(1, (spent - this.#cpuMicros) / 1_000 / passedMs / availableParallelism()));
    this.#memory = memoryShare();
    // How late this timer is: what anything else on the loop had to wait as well.
    this.#lagMs = round(Math.max(0, passedMs - SAMPLE_MS));
    this.#at = now;
    this.#cpuMicros = spent;
    this.#traffic = this.#o.traffic.read();
    this.#o.onSample(this.#lagMs);
    this.#schedule();
  }
}

function memoryShare(): number {
  return round(Math.min(1, process.memoryUsage.rss() / totalmem()));
}

function cpuMicros(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
