/**
 * Tells the journal of writes that were refused because somebody else has a newer number. A leader that was paused, or a worker that
 * was cut off, may have thousands of them: a few a second are told one by one, the others are counted and told as one.
 */

import type { JobId } from "../core/ids.ts";
import type { Clock } from "../platform/clock.ts";
import type { Note } from "./journal.ts";

export interface Refusal {
  /** What was to be written, as "a result". */
  readonly what: string;
  /** The number that it carried; null where it has none. */
  readonly carried: number | null;
  /** The number that counts, as far as it is known. */
  readonly current: number | null;
  readonly job: JobId | null;
}

export interface RefusedWritesOptions {
  readonly journal: { note(note: Note): void };
  readonly clock: Clock;
  /** The epoch that a job is in now; for those that are told one by one. */
  readonly epochOf: (job: JobId) => Promise<number | null>;
}

const WINDOW_MS = 1_000;
/** In a window, beside the one that tells of the rest. */
const TOLD_MAX = 3;

export class RefusedWrites {
  readonly #o: RefusedWritesOptions;
  #told = 0;
  #rest = 0;
  #last: Refusal | null = null;
  /** Ends the window; null while there is none. */
  #callOff: (() => void) | null = null;

  constructor(options: RefusedWritesOptions) {
    this.#o = options;
  }

  tell(refusal: Refusal): void {
    this.#callOff ??= this.#o.clock.after(WINDOW_MS, () => this.close());
    if (this.#told < TOLD_MAX) {
      this.#told++;
      void this.#note(refusal, 1);
      return;
    }
    this.#rest++;
    this.#last = refusal;
  }

  /** Tells what is left. */
  close(): void {
    const [rest, last] = [this.#rest, this.#last];
    this.#told = 0;
    this.#rest = 0;
    this.#last = null;
    this.#callOff?.();
    this.#callOff = null;
    if (last) void this.#note(last, rest);
  }

  async #note({ what, carried, current, job }: Refusal, count: number): Promise<void> {
    const { journal, clock, epochOf } = this.#o;
    const since = clock.monotonic();
    const known = current ?? (job === null ? null : await epochOf(job).catch(() => null));
    journal.note({
      kind: "write.refused",
      subject: job,
      detail: { what, carried_epoch: carried, current_epoch: known, job_id: job, count },
      agoMs: clock.monotonic() - since,
    });
  }
}
