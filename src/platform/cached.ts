/**
 * A value that is read when a caller asks for it and the last one is too old. Callers at the same time share one read.
 *
 *   read    the value, or the error of the read
 *   next    the same from a read that begins after the call, so that a caller sees its own earlier writes
 *   get     for callers with limited patience: if the read fails or takes longer, they get the old value, with its age and the reason.
 *           Never rejects, and lets a slow source rest between two reads.
 */

import type { Clock } from "./clock.ts";
import { within } from "./loop.ts";

/** Of its time a source spends at most this part on reads of `get`: to count a million jobs takes a database a fifth of a second. */
const SHARE_MAX = 1 / 20;
/** A read that takes longer is trouble. */
const TROUBLE_MS = 1_000;

interface Read<Value> {
  readonly value: Promise<Value>;
  readonly since: number;
}

export class Cached<Value> {
  readonly #clock: Clock;
  readonly #freshMs: number;
  readonly #source: () => Promise<Value>;
  /** As last read. */
  value: Value | null = null;
  tookMs = 0;
  failures = 0;
  #at = -Infinity;
  #error: unknown = null;
  #reading: Read<Value> | null = null;
  #next: Promise<Value> | null = null;

  constructor(clock: Clock, freshMs: number, source: () => Promise<Value>) {
    this.#clock = clock;
    this.#freshMs = freshMs;
    this.#source = source;
  }

  get ageMs(): number {
    return this.#clock.monotonic() - this.#at;
  }

  get trouble(): string | null {
    const late = this.#reading && this.#clock.monotonic() - this.#reading.since >= TROUBLE_MS;
    if (late) return `no answer within ${TROUBLE_MS} ms`;
    if (this.#error === null) return null;
    return this.#error instanceof Error ? this.#error.message : String(this.#error);
  }

  /** Its age counts from the beginning of the read, so that a caller that asks every `freshMs` gets a new value each time. */
  async read(freshMs = this.#freshMs): Promise<Value> {
    return this.ageMs + this.tookMs < freshMs ? this.value! : (this.#reading ?? this.#begin()).value;
  }

  next(): Promise<Value> {
    if (!this.#reading) return this.#begin().value;
    const begin = (): Promise<Value> => this.#begin().value;
    return (this.#next ??= this.#reading.value.then(begin, begin));
  }

  async get(withinMs: number, freshMs = this.#freshMs): Promise<Value | null> {
    if (this.ageMs < Math.max(freshMs, this.tookMs / SHARE_MAX)) return this.value;
    const { value } = this.#reading ?? this.#begin();
    if (withinMs > 0) await within(this.#clock, withinMs, value).catch(() => {});
    return this.value;
  }

  #begin(): Read<Value> {
    this.#next = null;
    const since = this.#clock.monotonic();
    const value = this.#source().then(
      (read) => {
        this.value = read;
        this.#at = this.#clock.monotonic();
        this.tookMs = this.#at - since;
        this.#error = null;
        this.#reading = null;
        return read;
      },
      (error: unknown) => {
        this.failures++;
        this.#error = error;
        this.#reading = null;
        throw error;
      },
    );
    value.catch(() => {}); // the callers of `get` do not look at it
    return (this.#reading = { value, since });
  }
}
