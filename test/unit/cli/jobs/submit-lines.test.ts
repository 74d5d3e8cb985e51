import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { type Asked, fakeNode } from "../fake-node.ts";
import { runCli } from "../run-cli.ts";
import { suiteDirectory } from "../../../support/node-cleanup.ts";

const cwd = suiteDirectory();

type Job = { readonly payload: { readonly n: number }; readonly idempotency_key?: string };
const taken = ({ body }: Asked) => ({
  body: (body as Job[]).map(({ payload }) => ({
    job_id: `job-${payload.n}`,
    status: "queued",
    existed: payload.n === 2,
  })),
});

describe("baton submit --each-line", () => {
  it("submits a job for each line, in batches, and prints their ids", async () => {
    await using node = await fakeNode({ "POST /jobs": taken });
    const lines = Array.from({ length: 1_201 }, (_, n) => JSON.stringify({ n }));
    writeFileSync(
      join(cwd, "jobs.ndjson"),
      `${lines.slice(0, 700).join("\n")}\n\n${lines.slice(700).join("\r\n")}`,
    );
    const args = ["submit", "resize", "--each-line", "jobs.ndjson", "--queue", "q", "--idempotency-key", "k"];
    const { code, out, err } = await runCli([...args, "--url", node.url], { cwd });
    assert.equal(code, 0, err);
    const expected = Array.from({ length: 1_201 }, (_, n) => `job-${n}`);
    assert.deepEqual(out.trimEnd().split("\n"), expected);
    assert.match(err, /^1,201 jobs submitted in .*, of which 1 existed already$/m);
    const found = node.asked.map(({ body }) => (body as Job[]).length);
    assert.deepEqual(found, [500, 500, 201]);
    const [first] = node.asked[0]!.body as Job[];
    assert.deepEqual(first, { task: "resize", payload: { n: 0 }, queue: "q", idempotency_key: "k:1" });
    assert.equal(
      (node.asked[2]!.body as Job[]).at(-1)!.idempotency_key,
      "k:1202",
      "the empty line has a number too",
    );
  });

  it("takes them from stdin, and gives programs an object a line", async () => {
    await using node = await fakeNode({ "POST /jobs": taken });
    const args = ["submit", "resize", "--each-line", "-", "-o", "json", "--url", node.url];
    const { out } = await runCli(args, { input: '{"n":1}\n{"n":2}\n' });
    assert.equal(
      out,
      '{"line":1,"job_id":"job-1","existed":false}\n{"line":2,"job_id":"job-2","existed":true}\n',
    );
  });

  it("shows where a line is wrong", async () => {
    await using node = await fakeNode({ "POST /jobs": taken });
    const { code, err } = await runCli(["submit", "t", "--each-line", "-", "--url", node.url], {
      input: "{}\n{n:1}\n",
    });
    assert.equal(code, 2);
    assert.match(err, /line 2 of stdin is not valid JSON at line 1, column 2/);
    assert.equal(node.asked.length, 0);
  });

  it("says what went in before a refusal, and how to go on", async () => {
    let batches = 0;
    await using node = await fakeNode({
      "POST /jobs": (asked: Asked) =>
        ++batches === 1
          ? taken(asked)
          : { status: 400, body: { error: "BAD_PAYLOAD", message: "payload.n: no", field: "x" } },
    });
    const input = Array.from({ length: 600 }, (_, n) => JSON.stringify({ n })).join("\n");
    const { code, out, err } = await runCli(["submit", "t", "--each-line", "-", "--url", node.url], {
      input,
    });
    assert.equal(code, 4);
    assert.equal(out.trimEnd().split("\n").length, 500);
    assert.match(err, /^error: lines 501 to 600: payload\.n: no \(BAD_PAYLOAD\)$/m);
    assert.match(err, /^hint: 500 jobs before them are submitted; repeat with the same --idempotency-key/m);
  });

  it("needs a file that is there, and no other payload", async () => {
    const none = await runCli(["submit", "t", "--each-line", "nope", "--url", "http://127.0.0.1:1"], { cwd });
    assert.deepEqual(
      [none.code, none.err],
      [2, "error: --each-line nope cannot be read: there is no such file\n"],
    );
    const both = await runCli(["submit", "t", "{}", "--each-line", "-", "--url", "http://127.0.0.1:1"], {
      cwd,
    });
    assert.equal(both.code, 2);
  });
});
