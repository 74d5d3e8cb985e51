/**
 * Which language is this text in? Sixty languages, by the letter groups that are typical of each.
 *
 *     baton submit identify-language '{"text":"Wo ist der Bahnhof?"}' --wait
 */

import { setImmediate } from "node:timers/promises";
import { defineTask } from "batonjs/task";
import { eld } from "eld/medium";
import { z } from "zod";

/** Text looked at in one go: about 10 ms, after which other jobs and requests get their turn. */
const SLICE_LENGTH = 20_000;

const schema = z.strictObject({
  text: z.string().min(1, "must not be empty").max(1_000_000, "must be at most 1,000,000 characters"),
  /** How many candidates to return. */
  top: z.int().min(1).max(60).default(3),
});

export interface Identified {
  /** ISO 639-1, or null when no letter of the text is known. */
  readonly language: string | null;
  /** False for texts that are too short, or between two languages. */
  readonly reliable: boolean;
  /** The best candidates, best first; from 0 to 1, and not adding up to 1. */
  readonly scores: Readonly<Record<string, number>>;
  readonly characters: number;
}

export default defineTask({
  name: "identify-language",
  schema,
  timeout: "1m",
  async run({ text, top }, { log, progress, signal }): Promise<Identified> {
    const totals = new Map<string, number>();
    let reliable = 0;
    for (let at = 0; at < text.length; at += SLICE_LENGTH) {
      // A cancelled job, or one whose node is about to stop, ends between two slices.
      signal.throwIfAborted();
      const slice = text.slice(at, at + SLICE_LENGTH);
      const found = eld.detect(slice);
      if (found.isReliable()) reliable += slice.length;
      for (const [language, score] of Object.entries(found.getScores())) {
        totals.set(language, (totals.get(language) ?? 0) + score * slice.length);
      }
      progress(Math.floor((100 * (at + slice.length)) / text.length));
      await setImmediate();
    }
    const ranked = [...totals].sort(([, a], [, b]) => b - a).slice(0, top);
    const scores = Object.fromEntries(
      ranked.map(([language, total]) => [language, Math.round((1_000 * total) / text.length) / 1_000]),
    );
    const language = ranked[0]?.[0] ?? null;
    log(`${text.length} characters: ${language ?? "no language found"}`);
    return { language, reliable: reliable > text.length / 2, scores, characters: text.length };
  },
});
