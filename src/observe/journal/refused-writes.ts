/**
 * Records writes that were refused because another writer has a newer epoch. A leader that was paused may cause thousands
 * of them: a few per second get an entry of their own, the others are counted in one.
 */

import type { JobId } from "../../core/ids.ts";
import { describeRefusal, type Refusal } from "../../core/leadership/refused-write.ts";
import type { Platform } from "../../platform/platform.ts";
import { serviceOf } from "../../platform/service.ts";
import type { Journal } from "./journal.ts";

const WINDOW_MS = 1_000;
/** Entries in a window, without the one that counts the rest. */
const ENTRIES_MAX = 3;

/** Stops before the journal does: the last count is an entry. */
export function refusedWrites(
  { clock }: Pick<Platform, "clock">,
  journal: Pick<Journal, "note">,
  epochOf: (job: JobId) => Promise<number | null>,
) {
  let entries = 0;
  let rest = 0;
  let last: Refusal | null = null;
  let callOff: (() => void) | null = null;

  function add(refusal: Refusal): void {
    callOff ??= clock.after(WINDOW_MS, () => void endWindow());
    if (entries < ENTRIES_MAX) {
      entries++;
      void note(refusal, 1);
      return;
    }
    rest++;
    last = refusal;
  }

  async function endWindow(): Promise<void> {
    const [counted, refusal] = [rest, last];
    entries = 0;
    rest = 0;
    last = null;
    callOff?.();
    callOff = null;
    if (refusal) await note(refusal, counted);
  }

  async function note(refusal: Refusal, count: number): Promise<void> {
    const { write, carried, current, job } = refusal;
    const since = clock.monotonic();
    const known = current ?? (job === null ? null : await epochOf(job).catch(() => null));
    journal.note({
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
      agoMs: clock.monotonic() - since,
    });
  }

  return Object.assign(
    serviceOf(() => {}, endWindow),
    { add },
  );
}
