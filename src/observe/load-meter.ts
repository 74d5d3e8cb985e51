/** Measures how busy this process is, twice a second: CPU, memory, delay of the event loop and traffic. */

import { rounded } from "../core/format-figures.ts";
import type { NodeLoad, NodeTraffic } from "../core/node.ts";
import type { Platform } from "../platform/platform.ts";
import { serviceOf } from "../platform/service.ts";
import type { Traffic } from "./traffic.ts";

const SAMPLE_MS = 500;

interface LoadMeterOptions {
  readonly capacity: Pick<NodeLoad, "slots" | "serves" | "declares">;
  readonly traffic: Pick<Traffic, "read">;
  readonly onSample: (lagMs: number) => void;
  readonly supervised?: () => NodeLoad["supervised"] | null;
}

export function loadMeter(
  { clock, state, machine }: Pick<Platform, "clock" | "state" | "machine">,
  { capacity, traffic, onSample, supervised }: LoadMeterOptions,
) {
  let callOff = (): void => {};
  let measured = { at: 0, cpuMs: 0 };
  let cpu = 0;
  let memory = 0;
  let loopLagMs = 0;
  let rates: NodeTraffic | null = null;

  function look(): void {
    measured = { at: clock.monotonic(), cpuMs: machine.cpuMs() };
    memory = rounded(machine.memoryShare(), 3);
    rates = traffic.read();
  }

  function schedule(): void {
    callOff = clock.after(SAMPLE_MS, sample);
  }

  function sample(): void {
    const before = measured;
    look();
    const passedMs = Math.max(1, measured.at - before.at);
    cpu = rounded(Math.min(1, (measured.cpuMs - before.cpuMs) / passedMs), 3);
    // How late this timer is: what anything else on the loop had to wait as well.
    loopLagMs = rounded(Math.max(0, passedMs - SAMPLE_MS), 3);
    onSample(loopLagMs);
    schedule();
  }

  function read(): NodeLoad {
    const { running, connections, owned, reach } = state.readings;
    const told = supervised?.();
    return {
      jobs: running(),
      connections: connections(),
      cpu,
      memory,
      loopLagMs,
      ...owned(),
      ...capacity,
      ...(rates && { traffic: rates }),
      reach: reach(),
      ...(told && { supervised: told }),
    };
  }

  const start = (): void => {
    look();
    schedule();
  };
  return Object.assign(
    serviceOf(start, () => callOff()),
    { read },
  );
}
