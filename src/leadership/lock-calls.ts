/** Calls to a leader lock that may hang or answer late, each with a deadline. */

import { BatonError } from "../core/errors.ts";
import type { Clock } from "../platform/clock.ts";
import { within } from "../platform/loop.ts";
import type { LockSilence } from "./coordination.ts";

export type Answer<Value> =
  | { readonly given: true; readonly value: Value }
  | { readonly given: false; readonly error: unknown };

export interface AskOptions<Value> {
  readonly deadlineMs?: number;
  /** Ends the wait like the deadline does. */
  readonly stopping?: AbortSignal;
  readonly late?: (value: Value) => unknown;
}

export class LockCalls {
  readonly #clock: Clock;
  readonly #deadlineMs: number;
  #unanswered: { readonly since: number; readonly error: unknown } | null = null;
  readonly #background = new Set<Promise<unknown>>();

  constructor(clock: Clock, deadlineMs: number) {
    this.#clock = clock;
    this.#deadlineMs = deadlineMs;
  }

  silence(): LockSilence | null {
    if (!this.#unanswered) return null;
    const { since, error } = this.#unanswered;
    return { forMs: this.#clock.monotonic() - since, error };
  }

  async ask<Value>(call: () => Promise<Value>, options: AskOptions<Value> = {}): Promise<Answer<Value>> {
    const { deadlineMs = this.#deadlineMs, stopping, late } = options;
    const sentAt = this.#clock.monotonic();
    const asked = (async () => call())().then(
      (value): Answer<Value> => ({ given: true, value }),
      (error: unknown): Answer<Value> => ({ given: false, error }),
    );
    if (late) this.track(asked);
    const answer = await within(this.#clock, deadlineMs, asked, stopping);
    if (!answer && late) this.track(asked.then((later) => later.given && late(later.value)));
    if (answer?.given) {
      this.#unanswered = null;
      return answer;
    }
    if (stopping?.aborted) return { given: false, error: new BatonError("STOPPED", "stopped") };
    const error =
      answer?.error ?? new BatonError("DEADLINE", `no answer of the leader lock within ${deadlineMs} ms`);
    this.#unanswered = { since: this.#unanswered?.since ?? sentAt, error };
    return { given: false, error };
  }

  track(work: Promise<unknown>): void {
    this.#background.add(work);
    void work.finally(() => this.#background.delete(work));
  }

  /** Waits for what is still under way, no longer than a deadline. */
  async settle(): Promise<void> {
    await within(this.#clock, this.#deadlineMs, this.#allDone());
  }

  async #allDone(): Promise<void> {
    while (this.#background.size > 0) await Promise.all(this.#background);
  }
}
