/** Reads what a node says under `/metrics`: enough of the text format to look things up, and strict about what it does not know. */

import assert from "node:assert/strict";

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: Sample[];
}

const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)/gy;

export class Scrape {
  readonly families = new Map<string, Family>();
  readonly samples: Sample[] = [];

  constructor(text: string) {
    assert.ok(text.endsWith("\n"), "the last line has no end");
    let family = null as Family | null;
    for (const line of text.split("\n")) {
      const [, word, name, rest] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
      if (word === "HELP") family = { name: name!, help: rest!, type: "", samples: [] };
      else if (word === "TYPE") {
        assert.equal(family?.name, name, line);
        assert.ok(!this.families.has(name!), `${name} is told twice`);
        family = { ...family!, type: rest! };
        this.families.set(name!, family);
      } else if (line !== "") {
        const sample = readSample(line);
        assert.ok(family && belongs(sample.name, family), line);
        family.samples.push(sample);
        this.samples.push(sample);
      }
    }
  }

  static async of(url: string): Promise<Scrape> {
    const answer = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(10_000) });
    assert.equal(answer.status, 200);
    return new Scrape(await answer.text());
  }

  find(name: string, labels: Readonly<Record<string, string>> = {}): Sample[] {
    return this.samples.filter(
      (sample) =>
        sample.name === name &&
        Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
    );
  }

  /** The sum of those that fit; fails when there is none. */
  value(name: string, labels: Readonly<Record<string, string>> = {}): number {
    const found = this.find(name, labels);
    assert.ok(found.length > 0, `there is no ${name}${JSON.stringify(labels)}`);
    return found.reduce((sum, { value }) => sum + value, 0);
  }
}

function readSample(line: string): Sample {
  const [, name, inner = "", number] = LINE.exec(line) ?? [];
  assert.ok(name !== undefined, `not a line of the format: ${line}`);
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  let read = 0;
  for (const [all, label, value] of inner.matchAll(LABEL)) {
    assert.ok(labels[label!] === undefined, `${label} twice: ${line}`);
    labels[label!] = value!.replaceAll(/\\(.)/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped));
    read += all.length;
  }
  assert.equal(read, inner.length, `labels that cannot be read: ${line}`);
  const value = number === "+Inf" ? Infinity : Number(number);
  assert.ok(!Number.isNaN(value), line);
  return { name, labels, value };
}

function belongs(sample: string, { name, type }: Family): boolean {
  if (type !== "histogram") return sample === name;
  return ["_bucket", "_sum", "_count"].some((suffix) => sample === name + suffix);
}
