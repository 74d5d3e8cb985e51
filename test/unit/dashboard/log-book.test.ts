import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../support/fast-check.ts";
import { LogBook, oneLine, pieces } from "../../../dashboard/src/screens/log-book.ts";
import { column } from "../../support/columns.ts";

function line(seq: number, message = `line ${seq}`, level: "info" | "error" = "info") {
  return { seq, at: "2026-01-01T00:00:00.000Z", level, message, job_epoch: 1 };
}

describe("the lines of a log that a page keeps", () => {
  it("has each line once, also when a stream that was opened again tells some twice", () => {
    const book = new LogBook();
    book.add([line(1), line(2)]);
    book.add([line(2), line(3)]);
    assert.deepEqual(column(book.shown, "seq"), [1, 2, 3]);
    assert.equal(book.last, 3);
  });

  it("lets a search through, for lines that are there and for those to come", () => {
    const book = new LogBook();
    book.add([line(1, "Alpha"), line(2, "beta"), line(3, "alpha", "error")]);
    book.filter({ text: "ALPHA", level: null });
    assert.deepEqual(column(book.shown, "seq"), [1, 3]);
    book.add([line(4, "alphabet"), line(5, "gamma")]);
    assert.deepEqual(column(book.shown, "seq"), [1, 3, 4]);
    book.filter({ text: "alpha", level: "error" });
    assert.deepEqual(column(book.shown, "seq"), [3]);
    book.filter({ text: "", level: null });
    assert.equal(book.shown.length, 5);
  });

  it("cuts a text at its finds without losing any of it", () => {
    assert.deepEqual(pieces("an Ant and an ant", "ant"), ["an ", "Ant", " and an ", "ant", ""]);
    fc.assert(
      fc.property(fc.string(), fc.string(), (text, needle) => {
        assert.equal(pieces(text, needle).join(""), text);
      }),
    );
  });

  it("makes one row of a message with line breaks and colours of a terminal", () => {
    assert.equal(oneLine("\u001b[31mred\u001b[0m\nand\r\nmore"), "red ⏎ and ⏎ more");
  });
});
