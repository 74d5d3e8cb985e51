import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import { cronInWords, timingInWords } from "../../../../src/jobs/schedules/cron-description.ts";
import { parseCron } from "../../../../src/jobs/schedules/cron-syntax.ts";

const WORDS: Readonly<Record<string, string>> = {
  "* * * * *": "every minute",
  "*/5 * * * *": "every 5 minutes",
  "@hourly": "every hour",
  "0 3 * * *": "at 03:00 every day",
  "@daily": "at 00:00 every day",
  "30 2,14 * * *": "at 02:30 and 14:30 every day",
  "0 9 * * MON-FRI": "at 09:00, Monday through Friday",
  "0 12 * * 7": "at 12:00, only on Sunday",
  "0 0 L * *": "at 00:00, on the last day of the month",
  "@yearly": "at 00:00, on day 1 of the month, only in January",
  "0 8 * * FRI#2": "at 08:00, on the second Friday of the month",
  "0 8 * * FRIL": "at 08:00, on the last Friday of the month",
  // Given both, either will do, as in cron.ts.
  "0 8 13 * FRI": "at 08:00, on day 13 of the month, and on Friday",
  "*/10 * * * * *": "every 10 seconds",
};

describe("a cron expression in words", () => {
  for (const [expression, words] of Object.entries(WORDS)) {
    it(expression, () => assert.equal(cronInWords(expression), words));
  }

  it("has words whenever it is one that is taken", () => {
    const field = (min: number, max: number): fc.Arbitrary<string> => {
      const value = fc.integer({ min, max });
      const range = fc.tuple(value, value).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
      const step = fc.integer({ min: 1, max: max - min }).map((by) => `*/${by}`);
      const item = fc.oneof(value.map(String), range);
      const items = fc.array(item, { minLength: 1, maxLength: 4 }).map((all) => all.join(","));
      return fc.oneof(fc.constant("*"), step, items);
    };
    const fields = fc.tuple(
      field(0, 59),
      field(0, 59),
      field(0, 23),
      field(1, 31),
      field(1, 12),
      field(0, 6),
    );
    fc.assert(
      fc.property(fields, fc.boolean(), (all, withSeconds) => {
        const expression = (withSeconds ? all : all.slice(1)).join(" ");
        parseCron(expression);
        const words = cronInWords(expression);
        assert.ok(words !== null && /^[a-z0-9]/.test(words), `${expression}: ${words}`);
        assert.doesNotMatch(words, /undefined|NaN|null| {2}/);
      }),
    );
  });

  it("is repeated as it is where it is none", () => assert.equal(cronInWords("not cron"), null));
});

describe("a timing in words", () => {
  it("says the zone of a cron expression", () => {
    const cron = (zone: string) => ({ kind: "cron", expression: "0 3 * * *", zone }) as const;
    assert.equal(timingInWords(cron("Europe/Berlin")), "at 03:00 every day, Europe/Berlin time");
    assert.equal(timingInWords(cron("UTC")), "at 03:00 every day, UTC");
  });

  it("says how long an interval is", () => {
    const every = (everyMs: number): string => timingInWords({ kind: "every", everyMs, anchor: 0 });
    assert.equal(every(1_000), "every second");
    assert.equal(every(90_000), "every 1 minute 30 seconds");
    assert.equal(every(3_600_000), "every hour");
    assert.equal(every(300_000), "every 5 minutes");
    assert.equal(every(2 * 86_400_000), "every 2 days");
    assert.equal(every(1_500), "every 1 second 500 ms");
  });
});
