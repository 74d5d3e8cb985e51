import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Check, runChecks } from "../../../../src/cli/doctor/checks.ts";
import { ok } from "../../../../src/cli/doctor/findings.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { columns } from "../../../support/columns.ts";

describe("an examination", () => {
  it("runs all checks side by side and tells in their order, also of those that hang or break", async () => {
    const clock = new ManualClock();
    const checks: Readonly<Record<string, Check>> = {
      hangs: () => new Promise(() => {}),
      breaks: () => Promise.reject(new Error("oh")),
      works: () => [ok("fine")],
    };
    const under: string[] = [];
    const note = (names: readonly string[]): void => void under.push(names.join(","));
    const examined = runChecks(checks, {} as never, clock, 3_000, note);
    await clock.advance(2_999);
    assert.equal(under.at(-1), "hangs");
    await clock.advance(1);
    const found = await examined;
    assert.deepEqual(columns(found, "check", "verdict", "message"), [
      ["hangs", "failed", "no answer within 3.0s"],
      ["breaks", "failed", "the check itself broke: Error: oh"],
      ["works", "ok", "fine"],
    ]);
    assert.equal(under.at(-1), "");
    assert.equal(clock.waiting, 0);
  });
});
