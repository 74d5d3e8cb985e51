import { availableParallelism, totalmem } from "node:os";
import type { NodeLoad, NodeTraffic, Reach } from "../core/node.ts";
import type { Clock } from "../platform/clock.ts";
import { Lifecycle, type Service } from "../platform/service.ts";

const SAMPLE_MS = 500;

export interface LoadMeterOptions {
  readonly clock: Clock;
  readonly jobs: () => number;
  readonly connections: () => number;
  readonly owned: () => Pick<NodeLoad, "owned" | "drain">;
  /** What does not change. */
  readonly capacity?: Pick<NodeLoad, "slots" | "serves">;
  readonly traffic?: () => NodeTraffic;
  /** Twice a second, with how late the event loop was. */
  readonly onSample?: (lagMs: number) => void;
  /** Begins and ends with this. */
  readonly reach?: Service & { read(): readonly Reach[] };
  readonly supervised?: () => NodeLoad["supervised"] | null;
}

/** How busy this process is: measured twice a second, read at any time. */
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
    const supervised = this.#o.supervised?.();
    return {
      jobs: this.#o.jobs(),
      connections: this.#o.connections(),
      cpu: this.#cpu,
      memory: this.#memory,
      loopLagMs: this.#lagMs,
      ...this.#o.owned(),
      ...this.#o.capacity,
      ...(this.#traffic && { traffic: this.#traffic }),
      ...(this.#o.reach && { reach: this.#o.reach.read() }),
      ...(supervised && { supervised }),
    };
  }

  protected async onStart(): Promise<void> {
    await this.#o.reach?.start();
    this.#at = this.#o.clock.monotonic();
    this.#cpuMicros = cpuMicros();
    this.#memory = memoryShare();
    this.#traffic = this.#o.traffic?.() ?? null;
    this.#schedule();
  }

  protected async onStop(): Promise<void> {
    this.#cancel();
    await this.#o.reach?.stop();
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
    this.#traffic = this.#o.traffic?.() ?? null;
    this.#o.onSample?.(this.#lagMs);
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
