import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import { MISSED_AFTER_MS, type MissedPolicy, planDue } from "../../../../src/core/schedules/schedule.ts";

const every =
  (ms: number) =>
  (instant: number): number =>
    (Math.floor(instant / ms) + 1) * ms;

const minute = 60_000;

function plan(
  missed: MissedPolicy,
  nextAt: number | null,
  now: number,
  options: { missedMax?: number; everyMs?: number } = {},
) {
  const schedule = { nextAt, missed, missedMax: options.missedMax ?? 100 };
  return planDue(schedule, now, every(options.everyMs ?? minute));
}

const verdicts = (due: ReturnType<typeof planDue>): string[] =>
  due.occurrences.map(({ at, do: what, reason }) => `${at / minute} ${what}${reason ? ` ${reason}` : ""}`);

describe("planDue", () => {
  it("does nothing before the time", () => {
    assert.deepEqual(plan("run_once", 10 * minute, 10 * minute - 1), {
      occurrences: [],
      passedOver: null,
      nextAt: 10 * minute,
    });
    assert.deepEqual(plan("run_once", null, 10 * minute), {
      occurrences: [],
      passedOver: null,
      nextAt: null,
    });
  });

  it("fires an occurrence on time under every policy", () => {
    for (const policy of ["skip", "run_once", "run_all"] as const) {
      const due = plan(policy, 10 * minute, 10 * minute + 7);
      assert.deepEqual(verdicts(due), ["10 fire"]);
      assert.equal(due.nextAt, 11 * minute);
    }
  });

  it("calls an occurrence missed from the limit on, and not a moment before", () => {
    assert.deepEqual(verdicts(plan("skip", 10 * minute, 10 * minute + MISSED_AFTER_MS - 1)), ["10 fire"]);
    assert.deepEqual(verdicts(plan("skip", 10 * minute, 10 * minute + MISSED_AFTER_MS)), ["10 skip missed"]);
  });

  it("with skip drops what was missed and fires what is on time", () => {
    const due = plan("skip", 10 * minute, 13 * minute + 100);
    assert.deepEqual(verdicts(due), ["10 skip missed", "11 skip missed", "12 skip missed", "13 fire"]);
    assert.equal(due.nextAt, 14 * minute);
  });

  it("with run_once makes up for all of them with the newest", () => {
    assert.deepEqual(verdicts(plan("run_once", 10 * minute, 12.5 * minute)), [
      "10 skip missed",
      "11 skip missed",
      "12 fire",
    ]);
  });

  it("with run_all makes up for each, up to the cap, newest kept", () => {
    assert.deepEqual(verdicts(plan("run_all", 10 * minute, 13.5 * minute)), [
      "10 fire",
      "11 fire",
      "12 fire",
      "13 fire",
    ]);
    assert.deepEqual(verdicts(plan("run_all", 10 * minute, 13.5 * minute, { missedMax: 2 })), [
      "10 skip over_cap",
      "11 skip over_cap",
      "12 fire",
      "13 fire",
    ]);
  });

  it("says which occurrences it passes over when there are too many to note", () => {
    const due = plan("run_once", 1 * minute, 1_000 * minute);
    assert.equal(verdicts(due)[0], "1 skip missed");
    assert.equal(verdicts(due)[1], "900 skip missed");
    assert.equal(verdicts(due).at(-1), "1000 fire");
    assert.deepEqual(due.passedOver, { from: 2 * minute, before: 900 * minute });
  });

  it("needs few steps for a second-by-second schedule after a month away", () => {
    const monthMs = 30 * 86_400_000;
    let steps = 0;
    const following = (instant: number): number => {
      steps++;
      return every(1_000)(instant);
    };
    const due = planDue({ nextAt: 1_000, missed: "run_all", missedMax: 100 }, monthMs, following);
    assert.equal(due.occurrences.filter((occurrence) => occurrence.do === "fire").length, 100);
    assert.equal(due.nextAt, monthMs + 1_000);
    assert.ok(steps < 1_000, `${steps} steps`);
  });

  it("refuses a rule that does not move forward instead of turning for ever", () => {
    assert.throws(() => planDue({ nextAt: 1, missed: "skip", missedMax: 1 }, 10, (at) => at), RangeError);
  });

  it("accounts for every occurrence exactly once, in whatever portions time passes", () => {
    const gaps = fc.array(fc.integer({ min: 1, max: 200_000 }), { minLength: 1, maxLength: 400 });
    const policy = fc.constantFrom<MissedPolicy>("skip", "run_once", "run_all");
    const pauses = fc.array(fc.integer({ min: 0, max: 20_000_000 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(
        gaps,
        policy,
        fc.integer({ min: 1, max: 150 }),
        pauses,
        (gaps, missed, missedMax, pauses) => {
          let sum = 0;
          const all = gaps.map((gap) => (sum += gap));
          const following = (instant: number): number | null => all.find((at) => at > instant) ?? null;
          let nextAt: number | null = all[0]!;
          let now = 0;
          const seen: number[] = [];
          for (const pause of pauses) {
            now += pause;
            const due = planDue({ nextAt, missed, missedMax }, now, following);
            const over = due.passedOver;
            const [first, ...rest] = due.occurrences.map((occurrence) => occurrence.at);
            if (first !== undefined) seen.push(first);
            if (over) seen.push(...all.filter((at) => at >= over.from && at < over.before));
            seen.push(...rest);
            assert.ok(due.nextAt === null || due.nextAt > now);
            const madeUp = due.occurrences.filter(
              (one) => one.do === "fire" && now - one.at >= MISSED_AFTER_MS,
            ).length;
            assert.ok(madeUp <= { skip: 0, run_once: 1, run_all: missedMax }[missed]);
            nextAt = due.nextAt;
          }
          assert.deepEqual(
            seen,
            all.filter((at) => at <= now),
          );
        },
      ),
    );
  });
});
