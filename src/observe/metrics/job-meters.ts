/**
 * Metrics of jobs for the application's OpenTelemetry SDK, by the semantic conventions for messaging, beside those of
 * `/metrics`. Nothing is recorded until a meter provider is registered. Called for every job.
 */

import type { RunEnd } from "../../jobs/run/worker-monitor.ts";
import type { Attributes, Meter, Tracing } from "../../platform/tracing.ts";

interface Meters {
  readonly sent: ReturnType<Meter["createCounter"]>;
  readonly consumed: ReturnType<Meter["createCounter"]>;
  readonly waited: ReturnType<Meter["createHistogram"]>;
  readonly ran: ReturnType<Meter["createHistogram"]>;
}

export interface Bounds {
  readonly run: readonly number[];
  readonly wait: readonly number[];
}

export class JobMeters {
  readonly #tracing: Pick<Tracing, "meter">;
  readonly #bounds: Bounds;
  #meter: Meter | null = null;
  #made: Meters | null = null;

  constructor(tracing: Pick<Tracing, "meter">, bounds: Bounds) {
    this.#tracing = tracing;
    this.#bounds = bounds;
  }

  submitted(of: Attributes): void {
    this.#meters()?.sent.add(1, of);
  }

  started(of: Attributes, waitedMs: number): void {
    const meters = this.#meters();
    meters?.consumed.add(1, of);
    meters?.waited.record(waitedMs / 1_000, of);
  }

  ended(of: Attributes, how: RunEnd, ranMs: number): void {
    this.#meters()?.ran.record(ranMs / 1_000, { ...of, "baton.outcome": how });
  }

  #meters(): Meters | null {
    const meter = this.#tracing.meter();
    if (meter !== this.#meter) {
      this.#meter = meter;
      this.#made = meter && made(meter, this.#bounds);
    }
    return this.#made;
  }
}

/** What all numbers of a pair of queue and task are marked with. */
export function meterAttributes(queue: string, task: string): Attributes {
  return { "messaging.system": "baton", "messaging.destination.name": queue, "baton.task": task };
}

function made(meter: Meter, { run, wait }: Bounds): Meters {
  const seconds = (description: string, bounds: readonly number[]) => ({
    description,
    unit: "s",
    advice: { explicitBucketBoundaries: [...bounds] },
  });
  return {
    sent: meter.createCounter("messaging.client.sent.messages", {
      description: "Jobs that this process has stored.",
      unit: "{message}",
    }),
    consumed: meter.createCounter("messaging.client.consumed.messages", {
      description: "Runs of jobs that this process has started.",
      unit: "{message}",
    }),
    waited: meter.createHistogram(
      "baton.job.wait.duration",
      seconds("From the time at which a job could run to the start of its run.", wait),
    ),
    ran: meter.createHistogram("messaging.process.duration", seconds("Runs of jobs.", run)),
  };
}
