/** What a run writes for readers: its table and plots, into docs/benchmarks.md and the folder beside it. */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { barChart, type Chart } from "./chart.ts";
import { table, type StoreRow } from "./table.ts";

const DOCS = join(import.meta.dirname, "../docs");
const PAGE = join(DOCS, "benchmarks.md");
const BEGIN = "<!-- results: npm run bench -- table --write -->";
const END = "<!-- end of results -->";

/** Gives the names of the files. */
export function writeReport(
  head: string,
  rows: readonly StoreRow[],
  charts: ReadonlyMap<string, Chart>,
): string[] {
  mkdirSync(join(DOCS, "benchmarks"), { recursive: true });
  for (const [name, chart] of charts) writeFileSync(join(DOCS, "benchmarks", `${name}.svg`), barChart(chart));
  const images = [...charts].map(([name, { title }]) => `![${title}](benchmarks/${name}.svg)`);
  const results = [head, ...images, table(rows)].join("\n\n");
  writeFileSync(PAGE, withResults(readFileSync(PAGE, "utf8"), results));
  return ["docs/benchmarks.md", ...[...charts.keys()].map((name) => `docs/benchmarks/${name}.svg`)];
}

/** The page with other results between its two marks. */
export function withResults(page: string, results: string): string {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from < 0 || to < from)
    throw new Error(`docs/benchmarks.md has no place for results: ${BEGIN} … ${END}`);
  return `${page.slice(0, from)}${BEGIN}\n\n${results}\n\n${page.slice(to)}`;
}
