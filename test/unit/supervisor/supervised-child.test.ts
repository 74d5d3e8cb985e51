import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import {
  isGroupAlive,
  SupervisedChild,
  type SupervisedChildOptions,
} from "../../../src/supervisor/supervised-child.ts";
import { recordingLog } from "../../support/node-log.ts";
import { eventually } from "../../support/wait.ts";

const GENTLE = { hurryMs: 4_000, killMs: 5_000 };
const STAY = "setInterval(() => {}, 1000);";
/** Says when it is ready for signals, over its channel. */
const READY = "process.send('ready');";

function child(t: TestContext, script: string, more: Partial<SupervisedChildOptions> = {}) {
  const messages: unknown[] = [];
  const it = new SupervisedChild(
    { clock: systemClock, log: recordingLog() },
    {
      name: "agent",
      command: () => {
        return { file: process.execPath, args: ["-e", script], environment: process.env, channel: true };
      },
      restarts: { firstDelayMs: 20, delayMsMax: 80, degradedAfter: 3 },
      onMessage: (message) => void messages.push(message),
      onChange: () => {},
      ...more,
    },
  );
  t.after(() => it.turnOff({ hurryMs: 0, killMs: 0 }));
  const ready = (): Promise<unknown> =>
    eventually("the child", async () => messages.includes("ready") || null);
  return { it, messages, ready };
}

describe("SupervisedChild", () => {
  it("starts again what ends, later and later, and says so when it keeps ending", async (t) => {
    // A life counts as steady after twice the longest wait: longer than a process takes to start on a busy machine.
    const restarts = { firstDelayMs: 20, delayMsMax: 30_000, degradedAfter: 3 };
    const { it } = child(t, "process.exit(3)", { restarts });
    it.turnOn();
    await eventually("three crashes", async () => it.degraded || null);
    assert.equal(it.lastExit?.code, 3);
    assert.equal(it.lastExit?.reason, "ended by itself");
    await it.turnOff(GENTLE);
    assert.deepEqual([it.state, it.pid], ["off", null]);
  });

  it("is told in words when it cannot be started at all", async (t) => {
    const command = () => ({ file: "no-such-program", args: [], environment: process.env, channel: false });
    const { it } = child(t, "", { command });
    it.turnOn();
    await eventually("a try", async () => it.lastExit);
    assert.match(it.lastExit!.reason, /^could not be started: .*ENOENT/);
  });

  it("ends when it is asked, and is not started again", async (t) => {
    const { it, ready } = child(t, `process.on('SIGTERM', () => process.exit(0)); ${STAY} ${READY}`);
    it.turnOn();
    await ready();
    await it.turnOff(GENTLE);
    assert.deepEqual([it.lastExit!.code, it.lastExit!.reason, it.report().restarts], [0, "asked to stop", 0]);
  });

  it("is asked to hurry, and then killed with its whole group", async (t) => {
    const script = `
      let asked = 0;
      process.on('SIGTERM', () => process.send(++asked));
      require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(STAY)}]);
      ${STAY} ${READY}`;
    const { it, messages, ready } = child(t, script);
    it.turnOn();
    await ready();
    const group = it.pid!;
    await it.turnOff({ hurryMs: 300, killMs: 600 });
    assert.deepEqual(messages, ["ready", 1, 2]);
    assert.equal(it.lastExit!.signal, "SIGKILL");
    assert.match(it.lastExit!.reason, /^asked to stop and killed, because it did not end within 600 ms/);
    await eventually("the end of the group", async () => !isGroupAlive(group) || null);
  });

  it("has less time when it is asked again with less patience, and never more", async (t) => {
    const { it, ready } = child(t, `process.on('SIGTERM', () => {}); ${STAY} ${READY}`);
    it.turnOn();
    await ready();
    const from = systemClock.monotonic();
    const gentle = it.turnOff({ hurryMs: 60_000, killMs: 60_000 });
    await Promise.all([gentle, it.turnOff({ hurryMs: 100, killMs: 200 }), it.turnOff(GENTLE)]);
    assert.ok(systemClock.monotonic() - from < 3_000);
  });

  it("that was turned on again while it was ending lives again, without a wait", async (t) => {
    const { it, ready } = child(t, `process.on('SIGTERM', () => process.exit(0)); ${STAY} ${READY}`);
    it.turnOn();
    await ready();
    const first = it.pid;
    void it.turnOff(GENTLE);
    it.turnOn();
    await eventually("another life", async () => (it.pid !== null && it.pid !== first) || null);
    assert.equal(it.report().crashes_in_a_row, 0);
  });

  it("is replaced when it is wedged, which counts as a crash", async (t) => {
    const { it, ready } = child(t, `process.on('SIGTERM', () => {}); ${STAY} ${READY}`);
    it.turnOn();
    await ready();
    const first = it.pid;
    it.replace("it is silent");
    await eventually("another life", async () => (it.pid !== null && it.pid !== first) || null);
    assert.deepEqual(
      [it.report().crashes_in_a_row, it.report().restarts, it.lastExit!.reason],
      [1, 1, "wedged: it is silent"],
    );
  });

  it("is asked by a message, or by the end of its input, where there are no signals", async (t) => {
    const heeds = `process.on('message', (m) => m.baton === 'stop' && process.exit(7)); ${READY}`;
    const ours = child(t, heeds, { platform: "win32" });
    ours.it.turnOn();
    await ours.ready();
    await ours.it.turnOff(GENTLE);
    assert.equal(ours.it.lastExit!.code, 7);

    const script = "process.stdin.on('end', () => process.exit(8)).resume();";
    const command = () => ({
      file: process.execPath,
      args: ["-e", script],
      environment: process.env,
      channel: false,
    });
    const foreign = child(t, "", { platform: "win32", command });
    foreign.it.turnOn();
    await eventually("the program", async () => foreign.it.pid);
    await foreign.it.turnOff(GENTLE);
    assert.equal(foreign.it.lastExit!.code, 8);
  });
});
