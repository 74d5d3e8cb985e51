/**
 * Records writes that were refused because another writer has a newer epoch. A leader that was paused may cause thousands
 * of them: a few per second get an entry of their own, the others are counted in one.
 */

import type { JobId } from "../../core/ids.ts";
import { describeRefusal, type Refusal } from "../../core/leadership/refused-write.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Platform } from "../../platform/platform.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { Journal } from "./journal.ts";

const WINDOW_MS = 1_000;
/** Entries in a window, without the one that counts the rest. */
const ENTRIES_MAX = 3;

/** Stops before the journal does: the last count is an entry. */
export class RefusedWrites extends Lifecycle {
  readonly #clock: Clock;
  readonly #journal: Pick<Journal, "note">;
  readonly #epochOf: (job: JobId) => Promise<number | null>;
  #entries = 0;
  #rest = 0;
  #last: Refusal | null = null;
  #callOff: (() => void) | null = null;

  constructor(
    { clock }: Pick<Platform, "clock">,
    journal: Pick<Journal, "note">,
    epochOf: (job: JobId) => Promise<number | null>,
  ) {
    super();
    this.#clock = clock;
    this.#journal = journal;
    this.#epochOf = epochOf;
  }

  add(refusal: Refusal): void {
    this.#callOff ??= this.#clock.after(WINDOW_MS, () => void this.#endWindow());
    if (this.#entries < ENTRIES_MAX) {
      this.#entries++;
      void this.#note(refusal, 1);
      return;
    }
    this.#rest++;
    this.#last = refusal;
  }

  protected override onStart(): void {}

  protected override onStop(): Promise<void> {
    return this.#endWindow();
  }

  async #endWindow(): Promise<void> {
    const [rest, last] = [this.#rest, this.#last];
    this.#entries = 0;
    this.#rest = 0;
    this.#last = null;
    this.#callOff?.();
    this.#callOff = null;
    if (last) await this.#note(last, rest);
  }

  async #note(refusal: Refusal, count: number): Promise<void> {
    const { write, carried, current, job } = refusal;
    const since = this.#clock.monotonic();
    const known = current ?? (job === null ? null : await this.#epochOf(job).catch(() => null));
    this.#journal.note({
      kind: "write.refused",
      subject: job,
      detail: {
        write,
        what: describeRefusal(refusal),
        carried_epoch: carried,
        current_epoch: known,
        job_id: job,
        count,
      },
      agoMs: this.#clock.monotonic() - since,
    });
  }
}
