/**
 * A contract is a list of promises: a sentence, and a proof that throws when a keeper does not keep it. As plain
 * values they run under node:test on every keeper, and one by one on the deliberately broken ones.
 */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { systemClock } from "../../src/platform/clock.ts";

export type Promises<World> = Readonly<Record<string, (world: World) => Promise<void>>>;

/** Opens a world for one proof and closes it whatever happens. */
export type WithWorld<World> = (proof: (world: World) => Promise<void>) => Promise<void>;

/** In a world that knows how to close itself. */
export function inWorldOf<World extends { readonly close: () => Promise<unknown> }>(
  open: () => Promise<World>,
): WithWorld<World> {
  return async (proof) => {
    const world = await open();
    try {
      await proof(world);
    } finally {
      await world.close();
    }
  };
}

/** Sentence of a promise to the reason why this keeper cannot keep it; a test of its own pins what it does instead. */
export type Skips = Readonly<Record<string, string>>;

export interface ProveOptions {
  /** How many at a time, of those that mostly wait. */
  readonly concurrency?: number;
  readonly timeoutMs?: number;
}

export function prove<World>(
  title: string,
  promises: Promises<World>,
  within: WithWorld<World>,
  skip: Skips = {},
  { concurrency = 1, timeoutMs: timeout = 30_000 }: ProveOptions = {},
): void {
  for (const sentence of Object.keys(skip)) assert.ok(sentence in promises, `nobody promises "${sentence}"`);
  describe(title, { concurrency }, () => {
    for (const [sentence, proof] of Object.entries(promises))
      test(sentence, { skip: skip[sentence] ?? false, timeout }, () => within(proof));
  });
}

/** A proof that waits in vain has found something too: most would take longer to say so. */
const HANGS_AFTER_MS = 2_000;

/** Runs the proof of one promise on a broken keeper and fails unless the proof does. */
export async function findsOut<World>(
  promises: Promises<World>,
  sentence: string,
  within: WithWorld<World>,
): Promise<void> {
  const proof = promises[sentence];
  assert.ok(proof, `the contract has no promise "${sentence}"`);
  let verdict = "kept";
  // The limit is inside, so that the world is closed also when the proof goes on waiting.
  await within(async (world) => {
    const over = new AbortController();
    verdict = await Promise.race([
      proof(world).then(
        () => "kept",
        () => "broken",
      ),
      systemClock.sleep(HANGS_AFTER_MS, over.signal).then(() => "hangs"),
    ]);
    over.abort();
  });
  assert.notEqual(verdict, "kept", `the contract did not notice: ${sentence}`);
}
