import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createParser } from "eventsource-parser";
import { EventParser } from "../../../src/client/streams/event-parser.ts";
import * as fc from "../../support/fast-check.ts";

function read(pieces: readonly string[]): object[] {
  const parser = new EventParser();
  return pieces.flatMap((piece) => parser.feed(piece));
}

describe("server-sent events", () => {
  it("are read as another parser reads them, wherever the text is cut", () => {
    const token = fc.constantFrom(
      ..."data event id retry : \n \r \r\n \n\n \uFEFF \0 a é data:x\n id:7\n event:e\n".split(" "),
      " ",
      ": a comment\n",
    );
    fc.assert(
      fc.property(
        fc.array(token, { maxLength: 40 }),
        fc.array(fc.nat(3), { minLength: 1, maxLength: 20 }),
        (tokens, sizes) => {
          const theirs: object[] = [];
          const parser = createParser({
            onEvent: ({ event, id, data }) => void theirs.push({ event, id, data }),
          });
          const text = `${tokens.join("")}\n\n`;
          parser.feed(text);
          const pieces: string[] = [];
          for (let at = 0, cut = 0; at < text.length; cut++) {
            const end = at + 1 + sizes[cut % sizes.length]!;
            pieces.push(text.slice(at, end));
            at = end;
          }
          assert.deepEqual(read(pieces), theirs);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it("come with each piece that completes them, and not later", () => {
    const parser = new EventParser();
    assert.deepEqual(parser.feed('event: log\nid: 3\ndata: {"n"'), []);
    assert.deepEqual(parser.feed(":1}\n"), []);
    assert.deepEqual(parser.feed("\n: still here\n\ndata: next\n\nda"), [
      { event: "log", id: "3", data: '{"n":1}' },
      { event: undefined, id: undefined, data: "next" },
    ]);
    assert.deepEqual(parser.feed("ta: last\r\n\r\n"), [{ event: undefined, id: undefined, data: "last" }]);
  });
});
