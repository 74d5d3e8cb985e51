import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "../../support/fast-check.ts";
import { isJobId, jobId, NODE_NAME, type NodeName, parseJobId, THING_NAME } from "../../../src/core/ids.ts";

const UUID = "0198c0de-1234-7abc-8def-0123456789ab";
const names = fc.stringMatching(NODE_NAME).map((name) => name as NodeName);

describe("a job id", () => {
  test("gives back the birthplace and the uuid that it was made of", () => {
    fc.assert(
      fc.property(names, fc.uuid(), (birthplace, uuid) => {
        assert.deepEqual(parseJobId(jobId(birthplace, uuid)), { birthplace, uuid });
      }),
    );
  });

  test("S93: is read by the length of its end, so node and node-a may coexist", () => {
    const awkward = ["node", "node-a", "node-0198c0de", `node-${UUID}`.slice(0, 60), "a", "0198c0de-1234"];
    for (const name of awkward) assert.equal(parseJobId(`${name}-${UUID}`)?.birthplace, name);
  });

  for (const [title, text] of [
    ["nothing", ""],
    ["a uuid alone", UUID],
    ["a uuid behind a dash", `-${UUID}`],
    ["a missing dash", `node${UUID}`],
    ["a uuid in capitals", `node-${UUID.toUpperCase()}`],
    ["a uuid that is too short", `node-${UUID.slice(0, -1)}`],
    ["a uuid that is too long", `node-${UUID}0`],
    ["a path", `../../etc-${UUID}`],
    ["a host with a port", `evil.com:80-${UUID}`],
    ["a space", `no de-${UUID}`],
    ["a line break at the end", `node-${UUID}\n`],
    ["a NUL", `no\u0000de-${UUID}`],
    ["a name that ends in a dash", `node--${UUID}`],
    ["ten thousand characters", `${"n".repeat(10_000)}-${UUID}`],
    ["a name one too long", `${"n".repeat(64)}-${UUID}`],
  ] as const) {
    test(`is not ${title}`, () => assert.equal(isJobId(text), false));
  }

  test("is never found in text at random, and looking never throws", () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => assert.equal(parseJobId(text), null)));
  });
});

describe("a name", () => {
  test("of a node has up to 63 characters, of a thing up to 128", () => {
    assert.ok(NODE_NAME.test("n".repeat(63)));
    assert.ok(!NODE_NAME.test("n".repeat(64)));
    assert.ok(THING_NAME.test("n".repeat(128)));
    assert.ok(!THING_NAME.test("n".repeat(129)));
  });

  test("of a node has no slash, of a thing may have one inside", () => {
    assert.ok(!NODE_NAME.test("a/b"));
    assert.ok(THING_NAME.test("mail/send:now"));
    assert.ok(!THING_NAME.test("/send"));
  });
});
