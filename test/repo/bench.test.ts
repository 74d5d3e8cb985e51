/** What a benchmark run computes and draws from its measurements. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { barChart } from "../../bench/chart.ts";
import { changeTable, compareRatios, differences, passes, ratiosOf, type Ratio } from "../../bench/ratios.ts";
import { withResults } from "../../bench/report.ts";
import type { StoreRow } from "../../bench/table.ts";

const more = (ratio: number): Ratio => ({ ratio, better: "more" });
const less = (ratio: number): Ratio => ({ ratio, better: "less" });

function verdict(recorded: Ratio, measured: Ratio): string {
  return compareRatios({ figure: recorded }, { figure: measured })[0]!.verdict;
}

describe("the regression guard", () => {
  it("takes a rate that is worse by more than a fifth for lost", () => {
    assert.equal(verdict(more(0.5), more(0.39)), "LOST");
    assert.equal(verdict(more(0.5), more(0.41)), "kept");
  });

  it("takes a time that makes a fifth less of the speed for lost", () => {
    assert.equal(verdict(less(1), less(1.26)), "LOST");
    assert.equal(verdict(less(1), less(1.24)), "kept");
  });

  it("says so if a ratio became better", () => {
    assert.equal(verdict(more(0.5), more(0.7)), "better");
    assert.equal(verdict(less(2), less(1)), "better");
  });

  it("fails for a lost ratio, and not for those that are kept, better or new", () => {
    const recorded = { a: more(0.5), b: less(1) };
    assert.ok(passes(compareRatios(recorded, { a: more(0.9), b: less(1.1), c: more(0.1) })));
    assert.ok(!passes(compareRatios(recorded, { a: more(0.3), b: less(1.1) })));
  });

  it("fails for a recorded figure that was not measured", () => {
    const changes = compareRatios({ a: more(0.5) }, {});
    assert.deepEqual(changes, [
      { figure: "a", recorded: 0.5, measured: null, loss: null, verdict: "NOT MEASURED" },
    ]);
    assert.ok(!passes(changes));
  });

  it("shows the recorded ratio, the present one and the loss", () => {
    assert.equal(
      changeTable(compareRatios({ "sqlite drain": more(0.8) }, { "sqlite drain": more(0.4) })),
      [
        "| figure       | recorded |    now | loss |      |",
        "|--------------|---------:|-------:|-----:|------|",
        "| sqlite drain |   0.80 × | 0.40 × | 50 % | LOST |",
      ].join("\n"),
    );
  });

  it("compares the ratios of rows and never their absolute figures", () => {
    const row = { store: "sqlite", scenario: "bulk", target: null, unit: "jobs/s" } as const;
    const rows: StoreRow[] = [
      { ...row, figure: "bulk of 1,000", ours: 100_000, floor: 200_000, ratio: 0.5 },
      {
        ...row,
        figure: "  p50",
        unit: "ms",
        ours: 3,
        floor: 2,
        ratio: 1.5,
        cpuUs: { ours: { own: 20, server: 10 }, floor: { own: 10, server: null } },
      },
      { ...row, figure: "heap", unit: "MB", ours: 20, floor: null, ratio: null },
    ];
    assert.deepEqual(ratiosOf(rows), {
      "sqlite bulk: bulk of 1,000": more(0.5),
      "sqlite bulk: p50": less(1.5),
      "sqlite bulk: p50, CPU": less(3),
    });
  });

  it("names what differs between two machines", () => {
    const machine = { cpus: 2, model: "a", memoryGiB: 24, node: "v24.16.0", platform: "linux x64" };
    assert.deepEqual(differences(machine, machine), []);
    assert.deepEqual(differences({ ...machine, cpus: 8 }, machine), ["cpus 8 there, 2 here"]);
  });
});

describe("a bar chart", () => {
  const bar = (label: string, value: number) => ({ label, value, kind: "ours" as const });
  const widths = (svg: string): number[] =>
    [...svg.matchAll(/<rect x="[^"]*" y="[^"]*" width="([\d.]+)"/g)].map((match) => Number(match[1]));

  it("draws bars as long as their values, on one scale for all groups", () => {
    const groups = [
      { label: "first", bars: [bar("a", 100), bar("b", 50)] },
      { label: "second", bars: [bar("a", 25)] },
    ];
    const [a, b, c] = widths(barChart({ title: "Drain", unit: "jobs/s", groups }));
    assert.ok(Math.abs(a! / b! - 2) < 0.01 && Math.abs(a! / c! - 4) < 0.01, `${a} ${b} ${c}`);
  });

  it("writes names as text, whatever characters they have", () => {
    const groups = [{ label: "<1 & 2>", bars: [bar('"a"', 1)] }];
    const svg = barChart({ title: "t", unit: "u", groups });
    assert.match(svg, /&lt;1 &amp; 2&gt;/);
    assert.match(svg, /&quot;a&quot;/);
  });
});

describe("the page of results", () => {
  const begin = "<!-- results: npm run bench -- table --write -->";

  it("gets new results between its marks, and keeps the rest", () => {
    const page = `# Benchmarks\n\n${begin}\n\nold\n\n<!-- end of results -->\n\nrest\n`;
    assert.equal(withResults(page, "new"), page.replace("old", "new"));
  });

  it("is refused if it has no marks", () => {
    assert.throws(() => withResults("# Benchmarks\n", "new"), /no place for results/);
  });
});
