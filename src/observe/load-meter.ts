/** Measures how busy this process is, twice a second: CPU, memory, delay of the event loop and traffic. */

import { rounded } from "../core/format-figures.ts";
import type { NodeLoad, NodeTraffic } from "../core/node.ts";
import type { Platform } from "../platform/platform.ts";
import { Lifecycle } from "../platform/service.ts";
import type { Traffic } from "./traffic.ts";

const SAMPLE_MS = 500;

export interface LoadMeterOptions {
  readonly capacity: Pick<NodeLoad, "slots" | "serves">;
  readonly traffic: Pick<Traffic, "read">;
  readonly onSample: (lagMs: number) => void;
  readonly supervised?: () => NodeLoad["supervised"] | null;
}

export class LoadMeter extends Lifecycle {
  readonly #platform: Pick<Platform, "clock" | "state" | "machine">;
  readonly #o: LoadMeterOptions;
  #cancel: () => void = () => {};
  #cpuMs = 0;
  #at = 0;
  #cpu = 0;
  #memory = 0;
  #lagMs = 0;
  #traffic: NodeTraffic | null = null;

  constructor(platform: Pick<Platform, "clock" | "state" | "machine">, options: LoadMeterOptions) {
    super();
    this.#platform = platform;
    this.#o = options;
  }

  read(): NodeLoad {
    const { running, connections, owned, reach } = this.#platform.state.readings;
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
    const { clock, machine } = this.#platform;
    this.#at = clock.monotonic();
    this.#cpuMs = machine.cpuMs();
    this.#memory = rounded(machine.memoryShare(), 3);
    this.#traffic = this.#o.traffic.read();
    this.#schedule();
  }

  protected onStop(): void {
    this.#cancel();
  }

  #schedule(): void {
    this.#cancel = this.#platform.clock.after(SAMPLE_MS, () => this.#sample());
  }

  #sample(): void {
    const { clock, machine } = this.#platform;
    const now = clock.monotonic();
    const passedMs = Math.max(1, now - this.#at);
    const cpuMs = machine.cpuMs();
    this.#cpu = rounded(Math.min(1, (cpuMs - this.#cpuMs) / passedMs), 3);
    this.#memory = rounded(machine.memoryShare(), 3);
    // How late this timer is: what anything else on the loop had to wait as well.
    this.#lagMs = rounded(Math.max(0, passedMs - SAMPLE_MS), 3);
    this.#at = now;
    this.#cpuMs = cpuMs;
    this.#traffic = this.#o.traffic.read();
    this.#o.onSample(this.#lagMs);
    this.#schedule();
  }
}
