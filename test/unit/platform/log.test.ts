import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createLog, withFields } from "../../../src/platform/log.ts";
import type { LogOptions } from "../../../src/platform/log.ts";
import { prettyLine } from "../../../src/platform/pretty-log.ts";

function lines(options: Partial<LogOptions>, write: (log: ReturnType<typeof createLog>) => void): string[] {
  const written: string[] = [];
  const destination = { write: (text: string) => void written.push(text) };
  write(createLog({ level: "info", format: "json", name: "node-1", destination, ...options }));
  return written;
}

describe("the log", () => {
  it("writes JSON with the node, the level in words and the time in ISO-8601", () => {
    const [line] = lines({}, (log) => log.info({ jobId: "j" }, "started"));
    const { time, ...rest } = JSON.parse(line!) as Record<string, string>;
    assert.deepEqual(rest, { level: "info", node: "node-1", jobId: "j", msg: "started" });
    assert.equal(new Date(time!).toISOString(), time);
  });

  it("leaves out what is below its level", () => {
    const written = lines({ level: "warn" }, (log) => {
      log.debug({}, "a");
      log.info({}, "b");
      log.warn({}, "c");
    });
    assert.equal(written.length, 1);
    assert.equal(lines({ level: "silent" }, (log) => log.error({}, "x")).length, 0);
  });

  it("hides secrets wherever they stand", () => {
    const [line] = lines({}, (log) =>
      log.info(
        { token: "t0p", request: { headers: { authorization: "s3cret" } }, user: { password: "pw1" } },
        "x",
      ),
    );
    for (const secret of ["t0p", "s3cret", "pw1"]) assert.ok(!line!.includes(secret), secret);
    assert.match(line!, /\[hidden\]/);
  });

  it("keeps message and stack of an error", () => {
    for (const key of ["err", "error"]) {
      const [line] = lines({}, (log) => log.error({ [key]: new Error("broken") }, "x"));
      const { message, stack } = (JSON.parse(line!) as Record<string, Error>)[key]!;
      assert.equal(message, "broken");
      assert.match(stack!, /log\.test\.ts/);
    }
  });

  it("puts what changes with time into every line, as it is then, and a line's own words first", () => {
    let epoch = 1;
    const written = lines({}, (log) => {
      const named = withFields(log, () => ({ role: "LEADER", epoch }));
      named.info({ jobId: "j" }, "a");
      epoch = 2;
      named.warn({ epoch: 7 }, "b");
    }).map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.deepEqual(
      written.map(({ role, epoch: at, jobId, node }) => [node, role, at, jobId]),
      [
        ["node-1", "LEADER", 1, "j"],
        ["node-1", "LEADER", 7, undefined],
      ],
    );
  });

  it("is for people where they ask for it", () => {
    const written = lines({ format: "pretty", level: "debug" }, (log) => {
      log.info({ role: "LEADER", jobId: "j" }, "started");
      log.debug({}, "with nothing else");
    });
    assert.match(written[0]!, /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: started \{"jobId":"j"\}\n$/);
    assert.match(written[1]!, /DEBUG: with nothing else\n$/);
  });

  it("shows people the stack of an error, its cause and its other fields", () => {
    const error = Object.assign(new Error("broken", { cause: new Error("the disk is full") }), {
      code: "ENOSPC",
    });
    const [line] = lines({ format: "pretty" }, (log) => log.error({ error, path: "/jobs" }, "failed"));
    assert.match(line!, /^\[[^\]]+\] ERROR: failed \{"error":\{"code":"ENOSPC"\},"path":"\/jobs"\}\n/);
    assert.match(line!, /\n {4}error: Error: broken\n {8}at .*log\.test\.ts/);
    assert.match(line!, /caused by: Error: the disk is full/);
  });

  it("writes nothing that a terminal would obey, and colours only where they are wanted", () => {
    const json =
      '{"level":"warn","time":"2026-01-31T09:00:00.007Z","msg":"a \\u001b[2J b","text":"\\u001b[31m"}';
    const plain = prettyLine(json, false);
    assert.match(plain, /\.007\] WARN: a \\u001b\[2J b \{"text":"\\u001b\[31m"\}\n$/);
    assert.ok(prettyLine(json, true).includes("\u001b[33mWARN\u001b[39m"));
  });
});
