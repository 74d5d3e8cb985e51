import type { ComponentChildren } from "preact";
import { type Tone, toneOf } from "../../../src/core/status-tones.ts";

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
