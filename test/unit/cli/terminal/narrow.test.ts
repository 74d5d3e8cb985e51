/** A terminal of sixty columns, and slips of a new user. */

import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { describe, it } from "node:test";
import { main } from "../../../../src/cli/main.ts";
import { journalText } from "../../../../src/core/journal-text.ts";
import { facts, hanging } from "../../../../src/cli/terminal/output.ts";
import { columnsOf, plain } from "../../../../src/cli/terminal/plain-text.ts";
import type { Terminal } from "../../../../src/cli/terminal/terminal.ts";
import { fakeNode, JOB_ID } from "../fake-node.ts";
import { caught, runCli, testClock } from "../run-cli.ts";

const COLUMNS = 60;

function narrow(): { terminal: Terminal; out: () => string; err: () => string } {
  const [out, err] = [caught(COLUMNS), caught(COLUMNS)];
  const input = Object.assign(Readable.from([]), { isTTY: true });
  const terminal: Terminal = {
    out: out.stream,
    err: err.stream,
    input,
    environment: { NO_COLOR: "1" },
    cwd: "/",
    clock: testClock,
  };
  return { terminal, out: out.text, err: err.text };
}

describe("a narrow terminal", () => {
  for (const command of ["", "start", "doctor", "submit", "jobs", "jobs list", "schedules add", "agent"]) {
    it(`has room for the help of baton ${command}`, async () => {
      const { terminal, out } = narrow();
      assert.equal(await main([...command.split(" ").filter(Boolean), "--help"], terminal), 0);
      // The name of an option stays in one piece.
      const wide = out()
        .split("\n")
        .filter((line) => columnsOf(line) > COLUMNS && !/^ {2}(?:-o, )?--\S+ \S+$/.test(line));
      assert.deepEqual(wide, []);
    });
  }

  it("has room for long values and sentences", () => {
    const { terminal } = narrow();
    const words = "word ".repeat(40).trim();
    for (const line of [
      ...facts(terminal, [["name", words]]).split("\n"),
      ...hanging(terminal, "  - ", words).split("\n"),
    ])
      assert.ok(columnsOf(plain(line)) <= COLUMNS, line);
  });
});

describe("a slip of the finger", () => {
  it("in the name of a task is told at once to whoever sits there", async () => {
    const waiting = { code: "unknown_task", message: "no node and no agent knows task hullo" };
    await using node = await fakeNode({
      "POST /jobs": { job_id: JOB_ID, status: "queued" },
      [`GET /jobs/${JOB_ID}`]: { job_id: JOB_ID, status: "queued", waiting_for: waiting },
    });
    const { terminal, out, err } = narrow();
    assert.equal(await main(["submit", "hullo", "--url", node.url], terminal), 0);
    assert.equal(out(), `${JOB_ID}\n`);
    assert.match(err(), /note: no node and no agent knows task hullo/);
    const script = await runCli(["submit", "hullo", "--url", node.url]);
    assert.doesNotMatch(script.err, /note:/);
  });

  it("in a port is no riddle", async () => {
    const port = await runCli(["demo", "--port", "99999"]);
    assert.equal(port.code, 2);
    assert.match(port.err, /It must be a port from 1 to 65535/);
  });

  it("is not in lists that are empty", async () => {
    await using node = await fakeNode({
      "GET /tokens": { tokens: [] },
      "GET /users": { users: [] },
    });
    assert.match(
      (await runCli(["token", "list", "--url", node.url])).out,
      /^there are no tokens; make one with/,
    );
    assert.match(
      (await runCli(["user", "list", "--url", node.url])).out,
      /^there are no users; add one with/,
    );
  });
});

describe("what was done by whom", () => {
  const entry = { id: "1", at: "", kind: "audit" as const, node: "a", actor: "ann", subject: "submit_jobs" };
  it("is told once, with how often", () => {
    const detail = { operation: "submit_jobs", count: 3, refused: 0, seconds: 60 };
    assert.equal(journalText({ ...entry, detail }), "ann submit jobs, 3 times");
    const one = { ...entry, subject: "node-b", detail: { operation: "drain_node" } };
    assert.equal(journalText(one), "ann drain node node-b");
  });
});
