import type { Term } from "../../core/leadership/term.ts";
import type { Clock } from "../../platform/clock.ts";
import type { NodeEvents } from "../../platform/node-events.ts";
import type { Store, Retention } from "../../store/store.ts";

export interface RetentionOptions {
  readonly store: Pick<Store, "purge">;
  readonly clock: Clock;
  readonly events: NodeEvents;
  readonly retention: Retention & { readonly journalMs: number };
}

/** Jobs looked at in one transaction: about 10 ms of an embedded store's time. */
const PIECE = 1_000;
const IDLE_MS = 5_000;

/** A leader's duty: finished jobs, and what the journal says, are removed when their time is over, a piece at a time. */
export function retentionDuty(options: RetentionOptions) {
  return async (term: Term, signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      const { store, retention, events } = options;
      const { journalMs } = retention;
      const jobs = await events.fenced(
        "jobs.purge",
        store.purge({ of: "jobs", retention, limit: PIECE }, term),
      );
      const entries = await events.fenced(
        "journal.purge",
        store.purge({ of: "journal", ageMs: journalMs, limit: PIECE }, term),
      );
      const removed = jobs + entries;
      // While there is much to remove it goes on, with a pause in which others get their turn.
      await options.clock.sleep(removed > 0 ? 20 : IDLE_MS, signal);
    }
  };
}
