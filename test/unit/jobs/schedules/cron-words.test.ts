import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import { cronInWords, timingInWords } from "../../../../src/jobs/schedules/cron-description.ts";
import { parseCron } from "../../../../src/jobs/schedules/cron-syntax.ts";

const WORDS: Readonly<Record<string, string>> = {
  "* * * * *": "every minute",
  "*/5 * * * *": "every 5 minutes",
  "0 * * * *": "every hour",
  "@hourly": "every hour",
  "15 * * * *": "every hour at 15 minutes past",
  "0,30 * * * *": "at 0 and 30 minutes past every hour",
  "0 3 * * *": "at 03:00 every day",
  "@daily": "at 00:00 every day",
  "30 2,14 * * *": "at 02:30 and 14:30 every day",
  "0 */2 * * *": "every 2 hours",
  "10 */6 * * *": "every 6 hours at 10 minutes past",
  "0 9 * * 1-5": "at 09:00 on weekdays",
  "0 9 * * MON-FRI": "at 09:00 on weekdays",
  "0 12 * * 0,6": "at 12:00 at weekends",
  "0 12 * * SAT,SUN": "at 12:00 at weekends",
  "0 12 * * MON,WED": "at 12:00 on Mondays and Wednesdays",
  "@weekly": "at 00:00 on Sundays",
  "0 0 1 * *": "at 00:00 on the 1st of the month",
  "0 0 L * *": "at 00:00 on the last day of the month",
  "0 0 1,15 * *": "at 00:00 on the 1st and 15th of the month",
  "0 0 22 3 *": "at 00:00 on the 22nd of the month in March",
  "@yearly": "at 00:00 on the 1st of the month in January",
  "0 8 * JAN,JUL *": "at 08:00 in January and July",
  "0 8 * * FRI#2": "at 08:00 on the second Friday of the month",
  "0 8 * * FRIL": "at 08:00 on the last Friday of the month",
  "0 8 13 * FRI": "at 08:00 on the 13th of the month and on Fridays",
  "*/15 9-17 * * *": "every 15 minutes from 09:00 to 17:45",
  "* * * * * *": "every second",
  "*/10 * * * * *": "every 10 seconds",
  "30 * * * * *": "at second 30 of every minute",
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
        assert.ok(words !== null && /^(every|at) /.test(words), `${expression}: ${words}`);
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
