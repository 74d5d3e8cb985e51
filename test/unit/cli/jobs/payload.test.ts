import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import { CliFailure } from "../../../../src/cli/failure.ts";
import { mistakePosition, parseTypedJson } from "../../../../src/cli/jobs/payload.ts";

function message(text: string): string {
  try {
    parseTypedJson(text, "the payload");
  } catch (error) {
    assert.ok(error instanceof CliFailure);
    assert.equal(error.exitCode, 2);
    return error.message;
  }
  assert.fail("it was accepted");
}

describe("typed JSON", () => {
  it("is parsed", () => {
    assert.deepEqual(parseTypedJson('{"a": [1, null]}', "the payload"), { a: [1, null] });
  });

  it("that is wrong shows the place", () => {
    assert.equal(
      message('{"a": hello}'),
      'the payload is not valid JSON at line 1, column 7: unexpected "h"\n  {"a": hello}\n        ^',
    );
    assert.equal(
      message('{\n  "a": 1,\n}'),
      'the payload is not valid JSON at line 3, column 1: unexpected "}"\n  }\n  ^',
    );
    assert.equal(
      message("{name: 1}"),
      'the payload is not valid JSON at line 1, column 2: unexpected "n"\n  {name: 1}\n   ^',
    );
  });

  it("that ends too early says so", () => {
    assert.equal(
      message("[1, 2"),
      "the payload is not valid JSON at line 1, column 6: it ends too early\n  [1, 2\n       ^",
    );
    assert.equal(
      message(""),
      "the payload is not valid JSON at line 1, column 1: it ends too early\n  \n  ^",
    );
  });

  it("shows only the surroundings in a long line", () => {
    const text = `{"long": "${"x".repeat(500)}", oops}`;
    const [, shown, mark] = message(text).split("\n");
    assert.ok(shown!.length < 90);
    assert.equal(shown![mark!.indexOf("^")], "o");
  });

  it("can be taken up to the mistake and no further, wherever it is", () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), (json, where) => {
        const at = where % (json.length + 1);
        // No JSON has this character outside of a string, and none goes on after it.
        const broken = `${json.slice(0, at)}\u0000${json.slice(at)}`;
        assert.equal(mistakePosition(broken), at);
      }),
    );
  });
});
