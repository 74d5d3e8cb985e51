/**
 * The metrics of one node, in its own registry, because several nodes may run in one process. The measured parts keep
 * plain numbers, which are read at each scrape.
 */

import type * as Prometheus from "@prometheus-io/client";
import type { Metric, Registry } from "@prometheus-io/client";
import { loadPackage } from "../../platform/load-package.ts";

export type Labels = Readonly<Record<string, string>>;
export type Reading = readonly [labels: Labels, value: number];

export interface Described {
  /** With the prefix `baton_`, in base units. */
  readonly name: string;
  readonly help: string;
}

/** One number, or one for each set of labels; null when nothing is known. */
type Read = () => number | null | Iterable<Reading>;

export class Instruments {
  readonly contentType = "text/plain; version=0.0.4; charset=utf-8";
  readonly #metrics: Metric<string>[] = [];
  #registry: Registry | null = null;

  /** All of them as text. The library is loaded by the first scrape: it takes a tenth of a second, and few nodes are scraped. */
  text(): Promise<string> {
    if (this.#registry === null) {
      const { Registry } = loadPackage<typeof Prometheus>("@prometheus-io/client");
      this.#registry = new Registry();
    }
    for (const metric of this.#metrics.splice(0)) this.#registry.registerMetric(metric);
    return this.#registry.metrics();
  }

  counter(described: Described, read: Read): void {
    this.#add("counter", described, () => readings(read()));
  }

  /** One that is not known is left out: zero would be wrong. */
  gauge(described: Described, read: Read): void {
    this.#add("gauge", described, () => readings(read()));
  }

  histogram(
    described: Described,
    read: () => Iterable<readonly [labels: Labels, tally: FastHistogram]>,
  ): void {
    this.#add("histogram", described, () => samples(described.name, read()));
  }

  #add(type: string, { name, help }: Described, values: () => Sample[]): void {
    const metric = {
      name,
      help,
      type,
      aggregator: "sum",
      get: async () => ({ name, help, type, aggregator: "sum", values: values() }),
      reset: () => {},
    };
    // All that a registry asks of a metric; its type names the library's own classes.
    this.#metrics.push(metric as unknown as Metric<string>);
  }
}

function readings(read: ReturnType<Read>): Sample[] {
  if (typeof read === "number") return [{ labels: {}, value: read }];
  return Array.from(read ?? [], ([labels, value]) => ({ labels, value }));
}

interface Sample {
  /** Left out where it is the name of the metric. */
  readonly metricName?: string;
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

export class FastHistogram {
  readonly bounds: readonly number[];
  /** Not cumulative; the last one is for what is above all bounds. */
  readonly counts: number[];
  sum = 0;
  count = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(value: number): void {
    const { bounds } = this;
    let at = 0;
    while (at < bounds.length && value > bounds[at]!) at++;
    this.counts[at]!++;
    this.sum += value;
    this.count++;
  }
}
