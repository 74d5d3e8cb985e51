import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Frame } from "../../../../src/cli/top/tty-session.ts";

const at = (row: number, text: string): string => `\u001b[${row};1H${text}`;
const together = (text: string): string => `\u001b[?2026h${text}\u001b[?2026l`;

describe("a frame", () => {
  it("writes all lines first, then only those that differ, and nothing for nothing", () => {
    const frame = new Frame();
    assert.equal(
      frame.next(["a", "b", "c"], 80),
      together(`${at(1, "a")}${at(2, "b")}${at(3, "c")}\u001b[J`),
    );
    assert.equal(frame.next(["a", "B", "c"], 80), together(at(2, "B")));
    assert.equal(frame.next(["a", "B", "c"], 80), "");
  });

  it("writes all of them when the size is another, or the screen is not what it was", () => {
    const frame = new Frame();
    frame.next(["a", "b"], 80);
    assert.equal(frame.next(["a", "b"], 70), together(`${at(1, "a")}${at(2, "b")}\u001b[J`));
    assert.equal(frame.next(["a"], 70), together(`${at(1, "a")}\u001b[J`));
    frame.forget();
    assert.equal(frame.next(["a"], 70), together(`${at(1, "a")}\u001b[J`));
  });
});
