import { type Tone, toneOf } from "../../../src/core/status-tones.ts";

export function Status({ word, tone = toneOf(word) }: { word: string; tone?: Tone }) {
  return <span class={`status ${tone}`}>{word}</span>;
}
