import type { ComponentChildren } from "preact";

/** Colours mean the same everywhere; the word is always there too. */
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

export function Status({
  word,
  tone,
  children,
}: {
  word: string;
  tone?: Tone;
  children?: ComponentChildren;
}) {
  return (
    <span class={`status ${tone ?? toneOf(word)}`}>
      {word}
      {children}
    </span>
  );
}
