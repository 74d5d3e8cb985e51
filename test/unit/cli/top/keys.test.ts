import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { keysIn } from "../../../../src/cli/top/tty-session.ts";

describe("keys", () => {
  it("are what the terminal sends for them", () => {
    assert.deepEqual(keysIn("\u001b[A\u001b[B\u001bOC\u001b[D"), ["up", "down", "right", "left"]);
    assert.deepEqual(keysIn("\t\u001b[Z\r\u001b[5~\u001b[6~\u001b[H\u001b[4~"), [
      "tab",
      "back-tab",
      "enter",
      "page-up",
      "page-down",
      "home",
      "end",
    ]);
    assert.deepEqual(keysIn("\u0003\u001a\u000c"), ["interrupt", "suspend", "redraw"]);
    assert.deepEqual(keysIn("dé?"), [{ char: "d" }, { char: "é" }, { char: "?" }]);
  });

  it("are an escape when it stands alone, and nothing when a sequence is not known", () => {
    assert.deepEqual(keysIn("\u001b"), ["escape"]);
    assert.deepEqual(keysIn("\u001b[15~x\u001b[1;5C"), [{ char: "x" }]);
    assert.deepEqual(keysIn("\u0000\u0007"), []);
  });
});
