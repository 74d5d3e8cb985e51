import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Cron } from "croner";
import * as fc from "../../../support/fast-check.ts";
import { compileTiming } from "../../../../src/jobs/schedules/cron.ts";
import { NICKNAMES } from "../../../../src/jobs/schedules/cron-syntax.ts";

const cron = (expression: string, zone = "UTC") => compileTiming({ kind: "cron", expression, zone });

/** The next occurrences after an instant, in UTC. */
function next(expression: string, after: string, count: number, zone = "UTC"): string[] {
  const { following } = cron(expression, zone);
  const found: string[] = [];
  let instant: number | null = Date.parse(after);
  while (found.length < count && (instant = following(instant)) !== null) found.push(iso(instant));
  return found;
}

/** The same as text, without the year when it is that of `after`: `03-29 01:00, 03-30 00:30`. */
function fires(expression: string, after: string, expected: string, zone = "UTC"): void {
  const found = next(expression, after, expected.split(", ").length, zone);
  const year = after.slice(0, 4);
  assert.deepEqual(
    found,
    expected.split(", ").map((at) => `${at.length > 14 ? "" : `${year}-`}${at.replace(" ", "T")}Z`),
  );
}

function iso(instant: number): string {
  return new Date(instant).toISOString().replace(/(?::00)?\.000Z$/, "Z");
}

const hourMs = 3_600_000;

describe("cron expressions", () => {
  const cases: [name: string, expression: string, after: string, expected: string][] = [
    ["five fields", "30 6 * * *", "2026-01-01T00:00Z", "01-01 06:30, 01-02 06:30"],
    [
      "six fields with seconds in front",
      "*/20 * * * * *",
      "2026-01-01T00:00Z",
      "01-01 00:00:20, 01-01 00:00:40, 01-01 00:01",
    ],
    ["lists, ranges and steps", "0 8-10/2,20 * * *", "2026-01-01T09:00Z", "01-01 10:00, 01-01 20:00"],
    ["names in any case", "0 0 * jan Mon-WED", "2026-01-08T00:00Z", "01-12 00:00, 01-13 00:00"],
    ["Sunday as 0", "0 0 * * 0", "2026-01-01T00:00Z", "01-04 00:00"],
    ["Sunday as 7", "0 0 * * 7", "2026-01-01T00:00Z", "01-04 00:00"],
    ["a range up to Sunday", "0 0 * * SAT-SUN", "2026-01-01T00:00Z", "01-03 00:00, 01-04 00:00, 01-10 00:00"],
    ["the last day of the month", "0 0 L * *", "2024-01-31T00:00Z", "02-29 00:00, 03-31 00:00"],
    ["the last day beside others", "0 0 15,L 2 *", "2026-02-01T00:00Z", "02-15 00:00, 02-28 00:00"],
    ["the last Friday", "0 0 * * FRIL", "2026-01-01T00:00Z", "01-30 00:00, 02-27 00:00"],
    ["the second Tuesday", "0 0 * * 2#2", "2026-01-01T00:00Z", "01-13 00:00, 02-10 00:00"],
    [
      "day of month or weekday when both are given",
      "0 0 13 * FRI",
      "2026-02-10T00:00Z",
      "02-13 00:00, 02-20 00:00",
    ],
    ["29 February", "0 0 29 2 *", "2026-01-01T00:00Z", "2028-02-29 00:00, 2032-02-29 00:00"],
    ["29 February across 2100, which is no leap year", "0 0 29 2 *", "2096-03-01T00:00Z", "2104-02-29 00:00"],
    ["more than one space", "  0   0\t1 1 *  ", "2026-01-01T00:00Z", "2027-01-01 00:00"],
  ];
  for (const [name, expression, after, expected] of cases) {
    it(`take ${name}`, () => fires(expression, after, expected));
  }

  it("take nicknames, which mean what they stand for", () => {
    for (const [nickname, meaning] of Object.entries(NICKNAMES)) {
      assert.deepEqual(next(nickname, "2026-05-05T05:05Z", 3), next(meaning, "2026-05-05T05:05Z", 3));
      assert.deepEqual(
        next(nickname.toUpperCase(), "2026-05-05T05:05Z", 1),
        next(meaning, "2026-05-05T05:05Z", 1),
      );
    }
  });

  it("give occurrences strictly after an instant, also one within a second", () => {
    fires("0 12 * * *", "2026-01-01T12:00:00.000Z", "01-02 12:00");
    fires("0 12 * * *", "2026-01-01T11:59:59.999Z", "01-01 12:00");
    fires("* * * * * *", "2026-01-01T12:00:00.001Z", "01-01 12:00:01");
    fires("30 2 * * *", "2026-01-01T01:30:00.001Z", "01-02 01:30", "Europe/Berlin");
  });

  const refused: [expression: string, message: RegExp, part?: string][] = [
    ["", /it is empty; write minute hour/],
    ["* * * *", /it has 4 fields/],
    ["0 0 0 1 1 * 2026", /it has 7 fields/],
    ["60 * * * *", /minute is 60; allowed are 0 to 59/, "minute"],
    ["* 24 * * *", /hour is 24; allowed are 0 to 23/, "hour"],
    ["* * 0 * *", /day of month is 0; allowed are 1 to 31/, "day of month"],
    ["* * * 13 *", /month is 13/, "month"],
    ["* * * * 8", /weekday is 8; allowed are 0 to 7/, "weekday"],
    ["61 * * * * *", /second is 61/, "second"],
    ["* * * FOO *", /month "FOO" is not understood; use \*, 1 to 12, names such as FEB/, "month"],
    ["0 0 * * FRI-MON", /weekday "FRI-MON" runs backwards; write it as two ranges/, "weekday"],
    ["0 0 1,,2 * *", /day of month has an empty place/, "day of month"],
    ["5/10 * * * *", /a step needs a range; write 5-59\/10/, "minute"],
    ["*/0 * * * *", /a step is 1 to 60/, "minute"],
    ["*/61 * * * *", /a step is 1 to 60/, "minute"],
    ["0 0 15W * *", /"15W" is not understood/, "day of month"],
    ["0 0 LW * *", /"LW" is not understood/, "day of month"],
    ["0 0 ? * *", /"\?" is not understood/, "day of month"],
    ["0 0 1 * +MON", /"\+MON" is not understood/, "weekday"],
    ["0 0 * * MON#6", /# takes 1 to 5/, "weekday"],
    ["0 0 * * L", /weekday "L" is not understood/, "weekday"],
    ["L * * * *", /minute "L" is not understood/, "minute"],
    ["0 0 * JANFEB *", /month "JANFEB" is not understood/, "month"],
    ["@dayly", /did you mean @daily/],
    ["@reboot", /known are @yearly/],
    ["2026-01-01T00:00:00", /it has 1 field;/],
    ["0 0 30 2 *", /no such date ever comes/],
    ["0 0 31 4,6,9,11 *", /no such date ever comes/],
  ];
  for (const [expression, message, part] of refused) {
    it(`refuse "${expression}" and say what is wrong`, () => {
      const details = { field: "cron", ...(part && { part }) };
      assert.throws(() => cron(expression), { code: "BAD_SCHEDULE", message, details });
    });
  }

  const zones: [zone: string, message: RegExp][] = [
    ["Europe/Berlni", /did you mean Europe\/Berlin\?/],
    ["Berlin", /did you mean Europe\/Berlin\?/],
    ["New York", /did you mean America\/New_York\?/],
    ["Utc+2", /is not known/],
    ["+02:00", /is not known/],
    // Taken by the runtime as Panama and as India: not what most people mean.
    ["EST", /is not known/],
    ["IST", /is not known/],
    ["Nowhere/Atlantis-on-Sea", /give an IANA name such as Europe\/Berlin, or UTC/],
  ];
  for (const [zone, message] of zones) {
    it(`refuse the zone "${zone}" and offer a remedy`, () => {
      const details = { field: "zone" };
      assert.throws(() => cron("0 0 * * *", zone), { code: "BAD_SCHEDULE", message, details });
    });
  }

  it("are compiled once", () => {
    assert.equal(cron("7 7 * * *", "Europe/Paris"), cron("7 7 * * *", "Europe/Paris"));
    assert.notEqual(cron("7 7 * * *", "Europe/Paris"), cron("7 7 * * *", "Europe/Rome"));
  });
});

describe("the day the clocks go forward", () => {
  // Berlin: 29 March 2026, 02:00 -> 03:00 (01:00 UTC). New York: 8 March 2026, 02:00 -> 03:00 (07:00 UTC).
  it("fires a daily run of the missing hour at the end of the gap", () => {
    fires("30 2 * * *", "2026-03-28T12:00Z", "03-29 01:00, 03-30 00:30", "Europe/Berlin");
    fires("30 2 * * *", "2026-03-07T12:00Z", "03-08 07:00, 03-09 06:30", "America/New_York");
  });

  it("fires it too when the expression names several hours or minutes, once for all of the gap", () => {
    fires("30 2,14 * * *", "2026-03-28T14:00Z", "03-29 01:00, 03-29 12:30", "Europe/Berlin");
    fires("0,30 2 * * *", "2026-03-28T14:00Z", "03-29 01:00, 03-30 00:00", "Europe/Berlin");
    fires("*/15 2-3 * * *", "2026-03-28T14:00Z", "03-29 01:00, 03-29 01:15", "Europe/Berlin");
  });

  it("fires it when the gap ends on the next day, and when it begins with the day", () => {
    // Nuuk: 28 March 2026, 23:00 -> 00:00. Santiago: 6 September 2026, 00:00 -> 01:00.
    fires("30 23 * * *", "2026-03-28T12:00Z", "03-29 01:00, 03-30 00:30", "America/Nuuk");
    fires("0 0 * * *", "2026-09-05T12:00Z", "09-06 04:00, 09-07 03:00", "America/Santiago");
  });

  it("takes every second hour for local times", () => {
    fires(
      "0 */2 * * *",
      "2026-03-28T22:30Z",
      "03-28 23:00, 03-29 01:00, 03-29 02:00, 03-29 04:00",
      "Europe/Berlin",
    );
  });

  it("gives an hourly schedule one interval of 90 minutes where the change is half an hour", () => {
    fires("0 * * * *", "2026-10-03T14:00Z", "10-03 14:30, 10-03 16:00, 10-03 17:00", "Australia/Lord_Howe");
  });

  it("leaves times outside the gap alone", () => {
    fires("0 3 * * *", "2026-03-28T12:00Z", "03-29 01:00, 03-30 01:00", "Europe/Berlin");
    fires("59 1 * * *", "2026-03-28T12:00Z", "03-29 00:59, 03-29 23:59", "Europe/Berlin");
  });
});

describe("the day the clocks go back", () => {
  // Berlin: 25 October 2026, 03:00 -> 02:00 (01:00 UTC). New York: 1 November 2026, 02:00 -> 01:00 (06:00 UTC).
  it("fires a daily run of the repeated hour once, the first time", () => {
    fires("30 2 * * *", "2026-10-24T12:00Z", "10-25 00:30, 10-26 01:30", "Europe/Berlin");
    fires("30 1 * * *", "2026-10-31T12:00Z", "11-01 05:30, 11-02 06:30", "America/New_York");
  });

  it("fires once also when the expression names several hours or minutes", () => {
    fires("30 2,14 * * *", "2026-10-24T14:00Z", "10-25 00:30, 10-25 13:30", "Europe/Berlin");
    fires("*/30 2 * * *", "2026-10-24T14:00Z", "10-25 00:00, 10-25 00:30, 10-26 01:00", "Europe/Berlin");
  });

  it("takes every second hour for local times", () => {
    fires("0 */2 * * *", "2026-10-24T21:30Z", "10-24 22:00, 10-25 00:00, 10-25 03:00", "Europe/Berlin");
  });

  it("does not fire again when asked within the second pass of the hour", () => {
    fires("30 2 * * *", "2026-10-25T01:10Z", "10-26 01:30", "Europe/Berlin");
  });

  it("finds the second pass of an hour that ends the day", () => {
    // Nuuk: 25 October 2026 00:00 -> 24 October 23:00 (01:00 UTC), so the 24th has 25 hours.
    fires("59 * 24 10 *", "2026-10-25T00:30Z", "10-25 00:59, 10-25 01:59, 2027-10-24 01:59", "America/Nuuk");
  });
});

describe("intervals", () => {
  const every = (everyMs: number, anchor = 0) => compileTiming({ kind: "every", everyMs, anchor });

  it("are aligned to their anchor, before and after it", () => {
    assert.equal(every(10_000).following(25_000), 30_000);
    assert.equal(every(10_000).following(30_000), 40_000);
    assert.equal(every(10_000, 3_000).following(25_000), 33_000);
    assert.equal(every(10_000, 3_000).following(-25_000), -17_000);
  });

  for (const wrong of [999, 0, -5, 1_000.5, NaN, Infinity, 400 * 24 * hourMs]) {
    it(`refuse ${wrong} ms`, () => {
      const details = { field: "every_ms" };
      assert.throws(() => every(wrong), { code: "BAD_SCHEDULE", message: /from 1000 /, details });
    });
  }
});

describe("following()", () => {
  const zone = fc.constantFrom(
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Nuuk",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Africa/Casablanca",
    "Pacific/Apia",
  );
  const field = (min: number, max: number) =>
    fc.oneof(
      fc.constant("*"),
      fc.integer({ min, max }).map(String),
      fc.integer({ min: 2, max: Math.min(12, max - min) }).map((step) => `*/${step}`),
      fc
        .tuple(fc.integer({ min, max }), fc.integer({ min, max }))
        .map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`),
      fc.array(fc.integer({ min, max }), { minLength: 2, maxLength: 4 }).map((values) => values.join(",")),
    );
  const expression = fc
    .tuple(
      field(0, 59),
      field(0, 23),
      fc.oneof(fc.constant("*"), field(1, 28)),
      fc.constantFrom("*", "*", "3", "10,11"),
      field(0, 6),
    )
    .map((fields) => fields.join(" "));
  const instant = fc.oneof(
    fc.integer({ min: Date.UTC(2020, 0, 1), max: Date.UTC(2035, 0, 1) }),
    // Around the changes, where it matters.
    fc.integer({ min: -6 * hourMs, max: 6 * hourMs }).map((delta) => Date.UTC(2026, 9, 25, 1) + delta),
    fc.integer({ min: -6 * hourMs, max: 6 * hourMs }).map((delta) => Date.UTC(2026, 2, 29, 1) + delta),
  );

  it("moves strictly forward and skips nothing, whatever the expression, zone and instant", () => {
    fc.assert(
      fc.property(
        expression,
        zone,
        instant,
        fc.double({ min: 0, max: 1, noNaN: true }),
        (text, zone, start, part) => {
          const { following } = cron(text, zone);
          let last = start;
          for (let i = 0; i < 5; i++) {
            const at = following(last);
            if (at === null) return;
            assert.ok(at > last, `${iso(at)} is not after ${iso(last)}`);
            // Asked from anywhere in between, the answer is the same: nothing lies there.
            assert.equal(following(Math.floor(last + (at - 1 - last) * part)), at);
            assert.equal(at % 1_000, 0);
            last = at;
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  it("agrees, for expressions of every hour, with looking at each minute around a change of the clocks", () => {
    const everyHour = fc
      .tuple(field(0, 59), fc.constantFrom("*", "*/1", "0-23"), fc.constantFrom("*", "24-29"), field(0, 6))
      .map(([minute, hour, day, weekday]) => `${minute} ${hour} ${day} * ${weekday}`);
    fc.assert(
      fc.property(
        everyHour,
        zone,
        fc.constantFrom(Date.UTC(2026, 2, 29), Date.UTC(2026, 9, 25), Date.UTC(2026, 3, 4)),
        (text, zone, day) => {
          const oracle = new Cron(text, { timezone: zone });
          const expected: string[] = [];
          for (let at = day - 12 * hourMs; at <= day + 12 * hourMs; at += 60_000) {
            if (oracle.match(new Date(at))) expected.push(iso(at));
          }
          const { following } = cron(text, zone);
          const found: string[] = [];
          let at = following(day - 12 * hourMs - 1);
          for (; at !== null && at <= day + 12 * hourMs; at = following(at)) found.push(iso(at));
          assert.deepEqual(found, expected);
        },
      ),
      { numRuns: 40 },
    );
  });

  it("keeps every elapsed interval of an every-hour expression equal across a year with whole-hour changes", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("Europe/Berlin", "America/New_York", "America/Nuuk", "America/Santiago"),
        fc.integer({ min: 0, max: 59 }),
        (zone, minute) => {
          const { following } = cron(`${minute} * * * *`, zone);
          let last = following(Date.UTC(2026, 0, 1))!;
          for (let i = 0; i < 366 * 24; i++) {
            const at: number = following(last)!;
            assert.equal(at - last, hourMs, iso(last));
            last = at;
          }
        },
      ),
      { numRuns: 8 },
    );
  });

  it("fires a daily time once on every local day of three years", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(
          "Europe/Berlin",
          "America/New_York",
          "America/Nuuk",
          "Australia/Lord_Howe",
          "Africa/Casablanca",
        ),
        fc.integer({ min: 0, max: 23 }),
        fc.integer({ min: 0, max: 59 }),
        (zone, hour, minute) => {
          const { following } = cron(`${minute} ${hour} * * *`, zone);
          let last = following(Date.UTC(2026, 0, 1))!;
          for (let i = 0; i < 1_095; i++) {
            const at: number = following(last)!;
            const hours = (at - last) / hourMs;
            // A run moved to the end of its gap comes up to an hour off, the change itself shifts by one more.
            assert.ok(hours >= 22 && hours <= 26, `${hours} hours after ${iso(last)}`);
            last = at;
          }
          const days = (last - Date.UTC(2026, 0, 1)) / (24 * hourMs);
          assert.ok(Math.abs(days - 1_095) < 2, `${days} days`);
        },
      ),
      { numRuns: 10 },
    );
  });
});
