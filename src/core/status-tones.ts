/** How states of jobs, nodes, schedules and processes are coloured. The command line and the dashboard share it. */

export type Tone = "good" | "busy" | "wait" | "bad" | "off" | "plain";

const WORDS: readonly (readonly [Tone, readonly string[]])[] = [
  ["good", ["completed", "active", "alive", "running", "fired", "succeeded"]],
  ["busy", ["processing", "joining"]],
  ["wait", ["queued", "draining", "stale", "waiting", "stopping", "skipped", "paused", "warning"]],
  ["bad", ["failed", "dead", "degraded", "critical"]],
  ["off", ["cancelled", "removed", "stopped", "off"]],
];
const TONES: ReadonlyMap<string, Tone> = new Map(
  WORDS.flatMap(([tone, words]) => words.map((word) => [word, tone] as const)),
);

export function toneOf(word: string): Tone {
  return TONES.get(word) ?? "plain";
}
