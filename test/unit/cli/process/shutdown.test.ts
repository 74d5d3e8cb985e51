import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { describe, it } from "node:test";
import { untilStopped } from "../../../../src/cli/process/shutdown.ts";
import type { Output } from "../../../../src/cli/terminal/terminal.ts";
import { ManualClock } from "../../../support/manual-clock.ts";

function world(more: { progress?: () => string | null; released?: () => boolean } = {}) {
  const clock = new ManualClock();
  const signals = new EventEmitter();
  const said: string[] = [];
  const stops: boolean[] = [];
  const stopped = Promise.withResolvers<void>();
  let code: number | null = null;
  const err = { write: (text: string) => said.push(text.trimEnd()) } as unknown as Output;
  const terminal = { clock, err };
  const ended = untilStopped(
    terminal,
    {
      stop: ({ hurry }) => {
        stops.push(hurry);
        return stopped.promise;
      },
      leftovers: () => "1 running job",
      drainTimeoutMs: 10_000,
      ...more,
    },
    signals,
  ).then((value) => (code = value));
  return { clock, signals, said, stops, stopped, ended, code: () => code };
}

describe("a node that is told to stop", () => {
  it("drains on the first signal and exits with 0", async () => {
    const { signals, stops, stopped, ended } = world();
    signals.emit("SIGTERM", "SIGTERM");
    assert.deepEqual(stops, [false]);
    stopped.resolve();
    assert.equal(await ended, 0);
    assert.deepEqual(signals.eventNames(), []);
  });

  it("tells how far it is whenever that changes, and exits with 6 when jobs have no new owner", async () => {
    let handed = 0;
    const { clock, signals, said, stopped, ended } = world({
      progress: () => (handed === 0 ? null : `${handed} handed over`),
      released: () => true,
    });
    signals.emit("SIGTERM", "SIGTERM");
    await clock.advance(1_000);
    handed = 3;
    await clock.advance(2_000);
    handed = 4;
    await clock.advance(1_000);
    assert.deepEqual(said.slice(1), ["3 handed over", "4 handed over"]);
    stopped.resolve();
    assert.equal(await ended, 6);
    assert.equal(clock.waiting, 0, "no timer is left");
  });

  it("takes the echo of a signal for the same one", async () => {
    const { clock, signals, stops } = world();
    signals.emit("SIGINT", "SIGINT");
    await clock.advance(100);
    signals.emit("SIGINT", "SIGINT");
    assert.deepEqual(stops, [false]);
  });

  it("hurries on the second signal", async () => {
    const { clock, signals, said, stops, stopped, ended } = world();
    signals.emit("SIGTERM", "SIGTERM");
    await clock.advance(1_000);
    signals.emit("SIGTERM", "SIGTERM");
    assert.deepEqual(stops, [false, true]);
    assert.equal(said[1], "SIGTERM: stopping now");
    stopped.resolve();
    assert.equal(await ended, 0);
  });

  it("exits with 1 on the third signal, whatever is left", async () => {
    const { clock, signals, said, ended } = world();
    for (let count = 0; count < 3; count++) {
      signals.emit("SIGTERM", "SIGTERM");
      await clock.advance(1_000);
    }
    assert.equal(await ended, 1);
    assert.equal(said.at(-1), "SIGTERM: exiting at once; left behind: 1 running job");
  });

  it("exits with 1 and says what was left when the drain does not end", async () => {
    const { clock, signals, said, ended, code } = world();
    signals.emit("SIGTERM", "SIGTERM");
    await clock.advance(16_900);
    assert.equal(code(), null);
    await clock.advance(200);
    assert.equal(await ended, 1);
    assert.equal(said.at(-1), "not stopped after 17 s, exiting; left behind: 1 running job");
  });

  it("exits with 1 when stopping fails", async () => {
    const { signals, said, stopped, ended } = world();
    signals.emit("SIGTERM", "SIGTERM");
    stopped.reject(new Error("disk full"));
    assert.equal(await ended, 1);
    assert.equal(said.at(-1), "stopping failed: disk full");
  });
});
