import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ProgressBar, progressLine, WaitingLine } from "../../../../src/cli/terminal/progress-bar.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { caught } from "../run-cli.ts";

describe("a line of progress", () => {
  const at = (done: number, total: number | null, width: number, elapsedMs = 2_000): string =>
    progressLine({ label: "retrying", done, total, elapsedMs }, width);

  it("has a bar, the figures, the speed and what is left", () => {
    assert.equal(
      at(1_200, 4_000, 100),
      "retrying  [=========>                    ]  30%  1,200 of 4,000  600/s, 4.7s left",
    );
    assert.equal(
      at(4_000, 4_000, 100),
      "retrying  [==============================] 100%  4,000 of 4,000  2000/s",
    );
  });

  it("fits every width", () => {
    for (let width = 10; width < 130; width++) {
      for (const done of [0, 1, 999, 4_000]) assert.ok(at(done, 4_000, width).length <= width);
    }
    assert.equal(at(1_200, 4_000, 40), "retrying  30%  1,200 of 4,000  600/s, 4…");
  });

  it("counts where the end is not known, and says nothing of a speed too early", () => {
    assert.equal(at(1_200, null, 80, 100), "retrying  1,200");
  });
});

describe("a line of waiting", () => {
  function line(columns?: number) {
    const { stream, text } = caught(columns);
    const clock = new ManualClock();
    return { clock, text, line: new WaitingLine({ err: stream, clock } as never, () => "waiting for a") };
  }

  it("is there from the first second on, and gone with the last answer", async () => {
    const { line: shown, clock, text } = line(80);
    const [one, other] = [Promise.withResolvers<number>(), Promise.withResolvers<number>()];
    const answers = Promise.all([shown.during(one.promise), shown.during(other.promise)]);
    await clock.advance(900);
    assert.equal(text(), "");
    one.resolve(1);
    await clock.advance(1_200);
    assert.deepEqual(text().split("\r\u001b[2K").slice(1), ["waiting for a  1.0s", "waiting for a  2.0s"]);
    other.resolve(2);
    assert.deepEqual(await answers, [1, 2]);
    assert.ok(text().endsWith("\r\u001b[2K"));
    const before = text();
    await clock.advance(5_000);
    assert.equal(text(), before);
  });

  it("is not written where no terminal is", async () => {
    const { line: shown, clock, text } = line();
    const answer = Promise.withResolvers<number>();
    const waiting = shown.during(answer.promise);
    await clock.advance(3_000);
    answer.resolve(1);
    assert.equal(await waiting, 1);
    assert.equal(text(), "");
  });
});

describe("a bar", () => {
  function bar(columns?: number) {
    const { stream, text } = caught(columns);
    const clock = new ManualClock();
    return { clock, text, bar: new ProgressBar({ err: stream, clock } as never, "retrying") };
  }

  it("is one line that is redrawn, not too often, and taken away", async () => {
    const { bar: shown, clock, text } = bar(80);
    for (let done = 0; done < 100; done++) {
      shown.show(done, 100);
      await clock.advance(20);
    }
    shown.clear();
    const drawn = text().split("\r\u001b[2K").slice(1);
    assert.ok(drawn.length > 15 && drawn.length < 25, `${drawn.length} times in 2 s`);
    assert.equal(drawn.at(-1), "");
    assert.ok(!text().includes("\n"));
  });

  it("is a line now and then where no terminal is, and none for what is done at once", async () => {
    const quick = bar();
    quick.bar.show(50, 100);
    quick.bar.show(100, 100);
    quick.bar.clear();
    assert.equal(quick.text(), "");
    const slow = bar();
    for (let done = 0; done <= 120; done++) {
      slow.bar.show(done, 120);
      await slow.clock.advance(100);
    }
    const lines = slow.text().trimEnd().split("\n");
    assert.equal(lines.length, 2);
    assert.match(lines[0]!, /^retrying.* 41% +50 of 120 +10\/s, 7\.0s left$/);
  });
});
