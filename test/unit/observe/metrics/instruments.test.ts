import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Histogram, Registry } from "@prometheus-io/client";
import * as fc from "../../../support/fast-check.ts";
import { Instruments, FastHistogram } from "../../../../src/observe/metrics/instruments.ts";
import { queueTaskLabels } from "../../../../src/observe/metrics/job-metrics.ts";
import { Scrape } from "../../../support/prometheus-text.ts";

describe("a tally", () => {
  it("writes out what the library's own histogram would", async () => {
    const bounds = [0.1, 1, 10];
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.double({ min: 0, max: 20, noNaN: true }), { maxLength: 50 }),
        async (values) => {
          const registry = new Registry();
          const theirs = new Histogram({
            name: "baton_claim_seconds",
            help: "h",
            buckets: [...bounds],
            labelNames: ["q"],
            registers: [registry],
          });
          const ours = new FastHistogram(bounds);
          theirs.zero({ q: 'x"\\\n' });
          for (const value of values) {
            theirs.observe({ q: 'x"\\\n' }, value);
            ours.observe(value);
          }
          const instruments = new Instruments();
          instruments.register({ baton_claim_seconds: () => [[{ q: 'x"\\\n' }, ours]] });
          const sorted = (text: string): object[] =>
            new Scrape(text).samples.map(({ name, labels, value }) => ({ name, labels, value }));
          assert.deepEqual(sorted(await instruments.text()), sorted(await registry.metrics()));
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe("instruments", () => {
  it("are read when somebody scrapes, and not before", async () => {
    const instruments = new Instruments();
    let count = 0;
    let reads = 0;
    instruments.register({
      baton_claims_total() {
        reads++;
        return count;
      },
      baton_schedules: () => [
        [{ a: "1" }, count],
        [{ a: "2" }, -1],
      ],
    });
    count = 5;
    assert.equal(reads, 0);
    const first = new Scrape(await instruments.text());
    assert.deepEqual(
      [
        first.value("baton_claims_total"),
        first.value("baton_schedules", { a: "1" }),
        first.value("baton_schedules", { a: "2" }),
      ],
      [5, 5, -1],
    );
    count = 6;
    assert.equal(new Scrape(await instruments.text()).value("baton_claims_total"), 6);
    assert.deepEqual(
      [first.families.get("baton_claims_total")!.type, first.families.get("baton_schedules")!.type],
      ["counter", "gauge"],
    );
  });

  it("leave out what is not known, instead of telling zero", async () => {
    const instruments = new Instruments();
    let known: number | null = null;
    instruments.register({ baton_schedules: () => known });
    assert.deepEqual(new Scrape(await instruments.text()).find("baton_schedules"), []);
    known = 3;
    assert.equal(new Scrape(await instruments.text()).value("baton_schedules"), 3);
  });
});

describe("kinds", () => {
  it("are told apart up to a number, and then counted as others", () => {
    const kinds = queueTaskLabels(() => ({ n: 0 }));
    for (let round = 0; round < 2; round++)
      for (let n = 0; n < 250; n++) kinds.of(`q${n % 125}`, `t${n % 2}`).n++;
    const all = kinds.all;
    assert.equal(all.length, 101);
    const other = all.find(({ labels }) => labels.queue === "other")!;
    assert.deepEqual(other.labels, { queue: "other", task: "other" });
    assert.equal(
      all.reduce((sum, { counted }) => sum + counted.n, 0),
      500,
    );
    assert.equal(kinds.of("q0", "t0"), kinds.of("q0", "t0"));
    assert.equal(kinds.of("never", "seen"), other.counted);
  });
});
