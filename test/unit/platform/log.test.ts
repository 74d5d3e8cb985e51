import assert from "node:assert/strict";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import { createLog, withFields } from "../../../src/platform/log.ts";
import type { LogOptions } from "../../../src/platform/log.ts";

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

  it("is for people where they ask for it", async () => {
    const destination = new PassThrough();
    const written = once(destination, "data");
    const log = createLog({ level: "info", format: "pretty", name: "node-1", destination });
    log.info({ role: "LEADER", jobId: "j" }, "started");
    assert.match(String(await written), /INFO.*: started \{"jobId":"j"\}/);
  });
});
