import type { RenderableProps } from "preact";
import { type Tone, toneOf } from "../../../src/core/status-tones.ts";

export function Status({ word, tone, children }: RenderableProps<{ word: string; tone?: Tone }>) {
  return (
    <span class={`status ${tone ?? toneOf(word)}`}>
      {word}
      {children}
    </span>
  );
}
