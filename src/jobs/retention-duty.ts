import type { Duty } from "../core/leadership/term.ts";
import { repeat } from "../platform/loop.ts";
import type { Platform } from "../platform/platform.ts";
import type { Store, Retention } from "../store/store.ts";

/** Jobs looked at in one transaction: about 10 ms of an embedded store's time. */
const PIECE = 1_000;
const IDLE_MS = 5_000;
/** While there is much to remove, the pause in which others get their turn. */
const PAUSE_MS = 20;

/** A leader's duty: removes finished jobs and entries of the journal when their time is over, a piece at a time. */
export function retentionDuty(
  { clock, events }: Pick<Platform, "clock" | "events">,
  store: Pick<Store, "purge">,
  retention: Retention & { readonly journalMs: number },
): Duty {
  return (term, signal) =>
    repeat(clock, signal, async () => {
      const finished = store.purge({ of: "jobs", retention, limit: PIECE }, term);
      const jobs = await events.fenced("jobs.purge", finished);
      const old = store.purge({ of: "journal", ageMs: retention.journalMs, limit: PIECE }, term);
      const entries = await events.fenced("journal.purge", old);
      return jobs + entries > 0 ? PAUSE_MS : IDLE_MS;
    });
}
