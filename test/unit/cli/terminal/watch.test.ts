import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CallError } from "../../../../src/client/client-error.ts";
import { type OutputFormat, printed } from "../../../../src/cli/terminal/output.ts";
import { watched } from "../../../../src/cli/terminal/watch.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { VtScreen } from "../../../support/vt-screen.ts";
import { caught } from "../run-cli.ts";

/** Looks every two seconds; each look shows the next text, or fails with the next error. */
async function watching(looks: readonly (string | Error)[], output: OutputFormat, columns?: number) {
  const [out, err] = [caught(columns), caught()];
  const clock = new ManualClock();
  const over = new AbortController();
  let next = 0;
  const watchedTo = watched(
    { out: out.stream, err: err.stream, clock } as never,
    { watch: true, output },
    async () => {
      const look = looks[next++];
      if (look instanceof Error) throw look;
      return { text: printed(output, { look }, () => look ?? "", true) };
    },
    over.signal,
  );
  for (let each = 1; each < looks.length; each++) await clock.advance(2_000);
  over.abort();
  await watchedTo;
  return { out: out.text(), err: err.text(), looks: next };
}

const lost = new CallError("UNREACHABLE", "no connection to http://x");

describe("--watch", () => {
  it("draws in place on a terminal, without what was there before", async () => {
    const { out, looks } = await watching(["one\ntwo\nthree", "four"], "table", 40);
    assert.equal(looks, 2);
    const screen = new VtScreen(24, 40);
    screen.write(out);
    const [head, ...rest] = screen.text.split("\n");
    assert.match(head!, /^\d\d:\d\d:\d\d {2}every 2s, Ctrl-C ends$/);
    assert.deepEqual(rest, ["four"]);
  });

  it("prints one after the other elsewhere; JSON as lines, YAML as documents", async () => {
    assert.equal((await watching(["one", "two"], "table")).out, "one\ntwo\n");
    assert.equal((await watching(["one", "two"], "json")).out, '{"look":"one"}\n{"look":"two"}\n');
    assert.equal((await watching(["one", "two"], "yaml")).out, "---\nlook: one\n---\nlook: two\n");
  });

  it("outlives a node that is away, and says so", async () => {
    const { out, err } = await watching(["one", lost, "two"], "table");
    assert.equal(out, "one\ntwo\n");
    assert.equal(err, "no connection to http://x; trying again\n");
    const screen = new VtScreen(24, 60);
    screen.write((await watching(["one", lost], "table", 60)).out);
    assert.match(screen.text, /\nno connection to http:\/\/x$/);
  });

  it("ends with what will not pass", async () => {
    const refused = new CallError("NOT_FOUND", "there is no job", { status: 404 });
    await assert.rejects(watching([refused], "table"), /there is no job/);
  });
});
