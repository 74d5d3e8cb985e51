/**
 * Remembers the signatures of calls for as long as they would be accepted, so that none is accepted twice.
 *
 * There are two generations. New signatures go into the young one. When that is a whole window old it becomes the old
 * one, and the previous old one, whose signatures have all expired, is dropped at once. When the young one is full, the
 * answer is "full": forgetting a signature inside its window would allow a replay.
 */

export class SeenSignatures {
  readonly #windowMs: number;
  readonly #max: number;
  #young = new Set<number>();
  #old = new Set<number>();
  /** On a monotonic clock: a wall clock that is set must not make it forget. */
  #youngSince = Number.NEGATIVE_INFINITY;

  /** `windowMs` is how long after it was first seen a signature could still be accepted. */
  constructor(windowMs: number, max: number) {
    this.#windowMs = windowMs;
    this.#max = max;
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** `new` notes it. Only signatures that were found valid may come here: an outsider must not be able to fill it. */
  note(signature: Buffer, monotonic: number): "new" | "seen" | "full" {
    this.#turn(monotonic);
    // 48 bits of a MAC, which no sender can choose: a number is a quarter of the memory of a text, and that one call in
    // a hundred million is refused by chance is what its sender's retry is for.
    const mark = signature.readUIntBE(0, 6);
    if (this.#young.has(mark) || this.#old.has(mark)) return "seen";
    if (this.#young.size >= this.#max) return "full";
    this.#young.add(mark);
    return "new";
  }

  #turn(monotonic: number): void {
    const age = monotonic - this.#youngSince;
    if (age < this.#windowMs) return;
    this.#old = age < 2 * this.#windowMs ? this.#young : new Set();
    this.#young = new Set();
    this.#youngSince = monotonic;
  }
}
