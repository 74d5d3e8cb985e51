import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  columnsOf,
  fit,
  harmless,
  plain,
  shorten,
  wrapped,
} from "../../../../src/cli/terminal/plain-text.ts";

describe("text of others on our terminal", () => {
  it("loses what a terminal would obey", () => {
    const evil = "a\u001b[2Jb\u001b]0;title\u0007c\u001b]8;;http://x\u001b\\d\u001bMe\rf\u009b31mg\u202eh";
    assert.equal(plain(evil), "abcde f 31mg h");
    assert.equal(plain("two\nlines\tand a tab"), "two lines and a tab");
  });

  it("keeps colours, tabs and line ends in a log, and ends the colours", () => {
    assert.equal(
      harmless("\u001b[31mred\u001b[0m\tx\n\u001b[2Jy\u001b[1;1Hz"),
      "\u001b[31mred\u001b[0m\tx\nyz\u001b[0m",
    );
    assert.equal(harmless("plain\n"), "plain\n");
  });
});

describe("the width of text", () => {
  it("is counted in columns", () => {
    assert.equal(columnsOf("abc"), 3);
    assert.equal(columnsOf("日本"), 4);
    assert.equal(columnsOf("e\u0301"), 1);
    assert.equal(columnsOf("✓ ok…"), 5);
    assert.equal(columnsOf("🚀"), 2);
  });

  it("is made what was asked for, whatever the text is", () => {
    for (const text of ["", "ab", "abcdef", "日本語です", "a日b本c", "🚀🚀🚀"]) {
      for (let width = 0; width < 9; width++) {
        assert.equal(columnsOf(fit(text, width)), width, `${text} in ${width}`);
        assert.equal(columnsOf(fit(text, width, "right")), width, `${text} in ${width}`);
        assert.ok(columnsOf(shorten(text, width)) <= width);
      }
    }
    assert.equal(fit("abcdef", 4), "abc…");
    assert.equal(fit("7", 3, "right"), "  7");
  });

  it("is kept when lines are broken", () => {
    assert.deepEqual(wrapped("one two three", 7), ["one two", "three"]);
    assert.deepEqual(wrapped("unbreakable", 4), ["unbr", "eaka", "ble"]);
    assert.deepEqual(wrapped("", 4), []);
  });
});
