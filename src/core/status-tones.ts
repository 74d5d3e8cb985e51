/** How states of jobs, nodes, schedules and processes are coloured. The command line and the dashboard share it. */

export type Tone = "good" | "busy" | "wait" | "bad" | "off" | "plain";

const TONES: Readonly<Record<string, Tone>> = {
  scheduled: "plain",
  queued: "wait",
  processing: "busy",
  completed: "good",
  failed: "bad",
  cancelled: "off",
  active: "good",
  joining: "busy",
  draining: "wait",
  dead: "bad",
  alive: "good",
  stale: "wait",
  removed: "off",
  running: "good",
  waiting: "wait",
  stopping: "wait",
  stopped: "off",
  off: "off",
  degraded: "bad",
  fired: "good",
  skipped: "wait",
  paused: "wait",
  warning: "wait",
  critical: "bad",
  succeeded: "good",
};

export function toneOf(word: string): Tone {
  return TONES[word] ?? "plain";
}
