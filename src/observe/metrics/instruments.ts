/**
 * The metrics of one node, in its own registry, because several nodes may run in one process. The measured parts keep
 * plain numbers, which are read at each scrape.
 */

import { Counter, Gauge, Registry, type Metric } from "@prometheus-io/client";
import type { FastHistogram } from "./fast-histogram.ts";

export type Labels = Readonly<Record<string, string>>;
export type Reading = readonly [labels: Labels, value: number];

export interface Described {
  /** With the prefix `baton_`, in base units. */
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
}

/** One number, or one for each set of labels; null when nothing is known. */
type Read = () => number | null | Iterable<Reading>;

export class Instruments {
  readonly #registry = new Registry();

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** All of them as text. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  counter(described: Described, read: Read): void {
    const { name, help, labels: labelNames = [] } = described;
    const counter = new Counter({
      name,
      help,
      labelNames,
      registers: [],
      collect() {
        this.reset();
        for (const [labels, value] of readings(read())) this.inc({ ...labels }, value);
      },
    });
    this.#registry.registerMetric(counter);
  }

  gauge(described: Described, read: Read): void {
    const { name, help, labels: labelNames = [] } = described;
    const gauge = new Gauge({
      name,
      help,
      labelNames,
      registers: [],
      collect() {
        this.reset();
        const value = read();
        // One that is not known is left out: a zero would be a lie.
        if (value === null) return this.remove({});
        for (const [labels, number] of readings(value)) this.set({ ...labels }, number);
      },
    });
    this.#registry.registerMetric(gauge);
  }

  histogram(
    described: Described,
    read: () => Iterable<readonly [labels: Labels, tally: FastHistogram]>,
  ): void {
    const { name, help } = described;
    const metric = {
      name,
      help,
      type: "histogram",
      aggregator: "sum",
      get: async () => ({ name, help, type: "histogram", aggregator: "sum", values: samples(name, read()) }),
      reset: () => {},
    };
    // All that a registry asks of a metric; its type names the library's own classes.
    this.#registry.registerMetric(metric as unknown as Metric<string>);
  }
}

function readings(value: ReturnType<Read>): Iterable<Reading> {
  return typeof value === "number" ? [[{}, value]] : (value ?? []);
}

interface Sample {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

function samples(name: string, tallies: Iterable<readonly [Labels, FastHistogram]>): Sample[] {
  const values: Sample[] = [];
  for (const [labels, { bounds, counts, count, sum }] of tallies) {
    let below = 0;
    for (let at = 0; at < bounds.length; at++) {
      below += counts[at]!;
      values.push({ metricName: `${name}_bucket`, labels: { ...labels, le: bounds[at]! }, value: below });
    }
    values.push(
      { metricName: `${name}_bucket`, labels: { ...labels, le: "+Inf" }, value: count },
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: count },
    );
  }
  return values;
}
