import type { TaskContext } from "../../../../../src/jobs/tasks/task.ts";

export const isolation = "thread";

/** Busy for so many milliseconds without ever letting its event loop turn: no signal can reach it. */
export default function spin(ms: number, { log }: TaskContext): number {
  log("spinning");
  const until = performance.now() + ms;
  let turns = 0;
  while (performance.now() < until) turns++;
  return turns;
}
