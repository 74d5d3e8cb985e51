/** Reading events and logs over streams that break. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CallError } from "../../../../src/client/client-error.ts";
import { eventStream } from "../../../../src/client/streams/cluster-events.ts";
import { jobStream } from "../../../../src/client/streams/follow-job.ts";
import { resumed } from "../../../../src/client/streams/resumable-stream.ts";
import { systemClock } from "../../../../src/platform/clock.ts";

type Frame = readonly [event: string, id: string | null, data: object];

function text([event, id, data]: Frame): string {
  return `${id === null ? "" : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Each time that it is opened the next stream; a text among the frames is sent as it is, an error breaks it. */
function opener(streams: readonly (readonly (Frame | string | Error)[])[]) {
  const after: unknown[] = [];
  const open = async (seen: unknown): Promise<AsyncIterable<string>> => {
    const frames = streams[after.length];
    after.push(seen);
    if (!frames) throw new CallError("NOT_FOUND", "no more streams", { status: 404 });
    return (async function* () {
      for (const frame of frames) {
        if (frame instanceof Error) throw frame;
        yield typeof frame === "string" ? frame : text(frame);
      }
    })();
  };
  return { open, after };
}

const options = { giveUpAfterMs: 5_000 };
const hello = (node: string, last: string | null = null): Frame => [
  "hello",
  null,
  { node_id: node, last_event_id: last },
];
const broken = new CallError("UNREACHABLE", "it broke");

/** All that is told before there are no more streams. */
async function told(
  streams: readonly (readonly (Frame | string | Error)[])[],
  after: string | null = null,
): Promise<{ told: string[]; opened: unknown[] }> {
  const { open, after: opened } = opener(streams);
  const events: string[] = [];
  await assert.rejects(
    async () => {
      for await (const { event, id } of resumed(eventStream(open, after), options, systemClock))
        events.push(id ?? event);
    },
    { code: "NOT_FOUND" },
  );
  return { told: events, opened };
}

describe("the events of a cluster", () => {
  it("go on behind the last one that was seen, and none is told twice", async () => {
    const first = [hello("a"), ["job.started", "7-1", {}], ["job.completed", "7-2", {}], broken] as const;
    const second = [hello("b"), ["job.completed", "7-2", {}], ["job.started", "8-4", {}]] as const;
    const { told: events, opened } = await told([first, second]);
    assert.deepEqual(events, ["hello", "7-1", "7-2", "hello", "8-4"]);
    assert.deepEqual(opened, [null, "7-2", "8-4"]);
  });

  it("go on behind the newest one of the greeting when none was seen yet", async () => {
    const { told: events, opened } = await told([[hello("a", "7-9"), broken], [hello("b")]]);
    assert.deepEqual(
      [events, opened],
      [
        ["hello", "hello"],
        [null, "7-9", "7-9"],
      ],
    );
  });

  it("tell a gap when the connection broke before there was anything to go on behind", async () => {
    const { told: events } = await told([[hello("a"), broken], [hello("b")]]);
    assert.deepEqual(events, ["hello", "hello", "gap"]);
  });

  it("pass on gaps and what has no number, and begin where they are told to", async () => {
    const gap: Frame = ["gap", null, { since: "7-1", next: "7-5", message: "" }];
    const { told: events, opened } = await told(
      [[hello("a"), ":\n\n", gap, ["role.changed", null, {}], ["job.started", "7-5", {}]]],
      "7-1",
    );
    assert.deepEqual([events, opened[0]], [["hello", "gap", "role.changed", "7-5"], "7-1"]);
  });

  it("give up when nobody can be reached, and end silently when they are told to", async () => {
    const open = () => Promise.reject(broken);
    const all = async (signal?: AbortSignal) => {
      const limits = { ...options, giveUpAfterMs: 150, signal, onTrouble: () => void troubles++ };
      for await (const _ of resumed(eventStream(open, null), limits, systemClock));
    };
    let troubles = 0;
    await assert.rejects(all(), { code: "UNREACHABLE" });
    assert.equal(troubles, 1, "told once for the same reason");
    const stop = new AbortController();
    const reading = all(stop.signal);
    stop.abort();
    await reading;
  });
});

describe("the log of a job", () => {
  it("goes on behind its last line, with each line once, until the end", async () => {
    const line = (seq: number): Frame => ["log", String(seq), { seq, message: `line ${seq}` }];
    const end: Frame = ["end", null, { status: "completed", error: null }];
    const half: Frame = ["progress", null, { progress: 50, message: null }];
    const { open, after } = opener([
      [line(1), half, line(2), text(line(3)).slice(0, 20), broken],
      [line(2), half, line(3), ["later", null, {}]],
      [line(4), end, line(5)],
    ]);
    const seen: unknown[] = [];
    for await (const event of resumed(jobStream(open, 0), options, systemClock))
      seen.push(event.event === "log" ? event.line.seq : event.event);
    assert.deepEqual(seen, [1, "progress", 2, 3, 4, "end"]);
    assert.deepEqual(after, [0, 2, 3]);
  });
});
