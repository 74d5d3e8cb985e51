/** A job that writes log lines and reports progress at a steady rate. */

import { setTimeout as sleep } from "node:timers/promises";
import { defineTask } from "../src/jobs/tasks/task.ts";

export const CHATTY = "chatty";
const TICK_MS = 20;

interface ChattyPayload {
  readonly seconds: number;
  readonly linesPerSecond: number;
  readonly progressPerSecond: number;
}

export const chatty = defineTask({
  name: CHATTY,
  async run(payload, { log, progress }) {
    const { seconds, linesPerSecond, progressPerSecond } = payload as ChattyPayload;
    const startedAt = performance.now();
    let [lines, calls] = [0, 0];
    for (let elapsed = 0; elapsed < seconds; elapsed = (performance.now() - startedAt) / 1_000) {
      for (; lines < elapsed * linesPerSecond; lines++) log(`line ${lines} of a job that has much to say`);
      for (; calls < elapsed * progressPerSecond; calls++) progress((elapsed / seconds) * 100);
      await sleep(TICK_MS);
    }
  },
});
