/**
 * A value that is read again when it is old and a caller asks for it; concurrent callers share one read. Each caller
 * limits its own wait: if the read takes longer, the caller gets the old value, with its age and the error of the newer
 * read, if any.
 */

import type { Clock } from "./clock.ts";
import { within } from "./loop.ts";

export interface CachedValueOptions<Value> {
  readonly clock: Clock;
  /** How long a value counts as new, unless whoever asks has another opinion. */
  readonly freshMs: number;
  readonly look: () => Promise<Value>;
}

/** Of its time the store spends at most this part on one look: to count a million jobs takes a database a fifth of a second. */
const SHARE_MAX = 1 / 20;
/** A look that takes longer is trouble. */
const TROUBLE_MS = 1_000;

export class CachedValue<Value> {
  readonly #o: CachedValueOptions<Value>;
  #value: Value | null = null;
  #at = -Infinity;
  #tookMs = 0;
  #failures = 0;
  #error: string | null = null;
  #looking: { readonly done: Promise<void>; readonly since: number } | null = null;

  constructor(options: CachedValueOptions<Value>) {
    this.#o = options;
  }

  /** As it was known last; null if it never was. */
  get value(): Value | null {
    return this.#value;
  }

  get ageMs(): number {
    return this.#o.clock.monotonic() - this.#at;
  }

  /** What the last look took that found something. */
  get tookMs(): number {
    return this.#tookMs;
  }

  get failures(): number {
    return this.#failures;
  }

  get trouble(): string | null {
    const looking = this.#looking && this.#o.clock.monotonic() - this.#looking.since >= TROUBLE_MS;
    return looking ? `no answer within ${TROUBLE_MS} ms` : this.#error;
  }

  /** Never rejects. */
  async get(withinMs: number, freshMs = this.#o.freshMs): Promise<Value | null> {
    const { clock } = this.#o;
    if (this.ageMs < Math.max(freshMs, this.#tookMs / SHARE_MAX)) return this.#value;
    this.#looking ??= { done: this.#look(), since: clock.monotonic() };
    if (withinMs <= 0) return this.#value;
    await within(clock, withinMs, this.#looking.done);
    return this.#value;
  }

  async #look(): Promise<void> {
    const { clock, look } = this.#o;
    const startedAt = clock.monotonic();
    try {
      this.#value = await look();
      this.#at = clock.monotonic();
      this.#tookMs = this.#at - startedAt;
      this.#error = null;
    } catch (error) {
      this.#failures++;
      this.#error = error instanceof Error ? error.message : String(error);
    }
    this.#looking = null;
  }
}
