/**
 * The metrics of one node, in its own registry, because several nodes may run in one process. The measured parts keep
 * plain numbers, which are read at each scrape.
 */

import { HISTOGRAMS, METRICS } from "./metric-table.ts";

export type Labels = Readonly<Record<string, string>>;
export type Reading = readonly [labels: Labels, value: number];

/** One number, or one for each set of labels. One that is not known (null) is left out: zero would be wrong. */
type Read = () => number | null | Iterable<Reading>;
type ReadHistogram = () => FastHistogram | Iterable<readonly [labels: Labels, histogram: FastHistogram]>;
type Readings<Name extends string, Value> = { readonly [Each in Name]?: Value };

export class Instruments<
  Name extends string = keyof typeof METRICS,
  Histogram extends string = keyof typeof HISTOGRAMS,
> {
  readonly contentType = "text/plain; version=0.0.4; charset=utf-8";
  readonly #help: Readonly<Record<string, string>>;
  readonly #families: Family[] = [];

  /** With other names than those of a node, in tests. */
  constructor(
    metrics: Readonly<Record<Name, string>> = METRICS as never,
    histograms: Readonly<Record<Histogram, string>> = HISTOGRAMS as never,
  ) {
    this.#help = { ...metrics, ...histograms };
  }

  /** All of them as text. */
  async text(): Promise<string> {
    return this.#families.map(familyText).join("");
  }

  register(readings: Readings<Name, Read>): void {
    for (const [name, read] of Object.entries<Read | undefined>(readings))
      this.#add(name, name.endsWith("_total") ? "counter" : "gauge", () => valuesOf(read!()));
  }

  histograms(readings: Readings<Histogram, ReadHistogram>): void {
    for (const [name, read] of Object.entries<ReadHistogram | undefined>(readings))
      this.#add(name, "histogram", () => bucketsOf(name, read!()));
  }

  #add(name: string, type: Family["type"], values: Family["values"]): void {
    this.#families.push({ name, help: this.#help[name]!, type, values });
  }
}

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly values: () => readonly Sample[];
}

/** In the text format of Prometheus, version 0.0.4. */
function familyText({ name, help, type, values }: Family): string {
  const lines = values().map(
    ({ metricName = name, labels, value }) => `${metricName}${labelsText(labels)} ${numberText(value)}\n`,
  );
  return `# HELP ${name} ${escaped(help)}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

function labelsText(labels: Sample["labels"]): string {
  const pairs = Object.entries(labels).map(
    ([label, value]) => `${label}="${escaped(String(value)).replaceAll('"', '\\"')}"`,
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

function numberText(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value);
  return value > 0 ? "+Inf" : "-Inf";
}

/** Numbers by the value of one label. */
export function byLabel(label: string, numbers: Readonly<Record<string, number>>): Reading[] {
  return Object.entries(numbers).map(([value, number]) => [{ [label]: value }, number]);
}

export function zeros<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}

function valuesOf(read: ReturnType<Read>): Sample[] {
  if (typeof read === "number") return [{ labels: {}, value: read }];
  return Array.from(read ?? [], ([labels, value]) => ({ labels, value }));
}

interface Sample {
  /** Left out where it is the name of the metric. */
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

function bucketsOf(name: string, read: ReturnType<ReadHistogram>): Sample[] {
  const values: Sample[] = [];
  const histograms = read instanceof FastHistogram ? [[{}, read] as const] : read;
  for (const [labels, { bounds, counts, count, sum }] of histograms) {
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
