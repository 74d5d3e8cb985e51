/** The metrics of one node, in its own registry, because several nodes may run in one process. Read at each scrape. */

import { HISTOGRAMS, METRICS } from "./metric-table.ts";

export type Labels = Readonly<Record<string, string>>;
export type Reading<Value = number> = readonly [labels: Labels, value: Value];

/** One value, or one for each set of labels. One that is not known (null) is left out: zero would be wrong. */
type Read<Value> = () => Value | null | Iterable<Reading<Value>>;

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly read: Read<number | FastHistogram>;
}

const HELP: Readonly<Record<string, string>> = { ...METRICS, ...HISTOGRAMS };

export class Instruments {
  readonly contentType = "text/plain; version=0.0.4; charset=utf-8";
  readonly #families: Family[] = [];

  async text(): Promise<string> {
    return this.#families.map(familyText).join("");
  }

  register(
    readings: { readonly [Name in keyof typeof METRICS]?: Read<number> } & {
      readonly [Name in keyof typeof HISTOGRAMS]?: Read<FastHistogram>;
    },
  ): void {
    for (const [name, read] of Object.entries(readings) as [string, Family["read"]][]) {
      const type = name in HISTOGRAMS ? "histogram" : name.endsWith("_total") ? "counter" : "gauge";
      this.#families.push({ name, help: HELP[name]!, type, read });
    }
  }
}

/** In the text format of Prometheus, version 0.0.4. */
function familyText({ name, help, type, read }: Family): string {
  const values = read() ?? [];
  const readings =
    typeof values === "number" || values instanceof FastHistogram ? [[{}, values] as const] : values;
  const lines = Array.from(readings, ([labels, value]) =>
    typeof value === "number" ? line(name, labels, value) : histogramText(name, labels, value),
  );
  return `# HELP ${name} ${escaped(help)}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

function histogramText(name: string, labels: Labels, { bounds, counts, count, sum }: FastHistogram): string {
  let below = 0;
  const buckets = bounds.map((le, at) => {
    below += counts[at]!;
    return line(`${name}_bucket`, { ...labels, le: String(le) }, below);
  });
  const all = line(`${name}_bucket`, { ...labels, le: "+Inf" }, count);
  return buckets.join("") + all + line(`${name}_sum`, labels, sum) + line(`${name}_count`, labels, count);
}

function line(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(
    ([label, text]) => `${label}="${escaped(text).replaceAll('"', '\\"')}"`,
  );
  return `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${numberText(value)}\n`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

function numberText(value: number): string {
  return String(value).replace("Infinity", "Inf").replace(/^Inf/, "+Inf");
}

export function byLabel(label: string, numbers: Readonly<Record<string, number>>): Reading[] {
  return Object.entries(numbers).map(([value, number]) => [{ [label]: value }, number]);
}

export function zeros<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
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
