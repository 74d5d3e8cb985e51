/** Events as one stream that resumes after each loss: from the journal, and from the events of a controller. */

import type { JournalEntryBody } from "../../api/operations/cluster/journal.ts";
import type { BatonClient } from "../../client/baton-client.ts";
import type { BatonClientError } from "../../client/client-error.ts";
import { mayPass } from "../../client/streams/resumable-stream.ts";
import type { Clock } from "../../platform/clock.ts";

export interface JournalFeedOptions {
  readonly client: BatonClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Entries before now: so many, or since an instant (ISO-8601). */
  readonly last: number;
  readonly since: string | null;
  readonly onTrouble: (reason: string) => void;
}

const PAGE = 500;
/** Enough to know again what a page brings a second time. */
const SEEN_MAX = 5_000;

/** Oldest first, each once. Ends when the signal fires; rejects with what will not pass. */
export async function* journalFeed(options: JournalFeedOptions): AsyncGenerator<JournalEntryBody> {
  const { client, clock, signal } = options;
  const seen = new Set<string>();
  const fresh = (entries: readonly JournalEntryBody[]): JournalEntryBody[] =>
    entries.filter((entry) => {
      const key = `${entry.node} ${entry.id}`;
      if (seen.has(key)) return false;
      seen.add(key);
      if (seen.size > SEEN_MAX) seen.delete(seen.values().next().value!);
      return true;
    });
  let since = options.since;
  let last: number | null = options.last;
  /** What was written while there was no stream: at first, and after each loss. */
  let missed = true;
  const onTrouble = (error: BatonClientError): void => {
    missed = true;
    options.onTrouble(error.message);
  };
  for await (const event of client.cluster.live({ signal, giveUpAfterMs: Infinity, onTrouble })) {
    if (missed) {
      missed = false;
      try {
        const entries = await entriesBack(client, since, last);
        last = null;
        yield* fresh(entries);
        since = entries.at(-1)?.at ?? since ?? new Date(clock.now()).toISOString();
      } catch (error) {
        if (!mayPass(error)) throw error;
        // The next event brings another try; this one is among what is read then.
        onTrouble(error);
        continue;
      }
    }
    if (event.event !== "journal") continue;
    since = event.entry.at;
    yield* fresh([event.entry]);
  }
}

/** Oldest first. Entries of one instant may come again, and are recognized. */
async function entriesBack(
  client: BatonClient,
  since: string | null,
  last: number | null,
): Promise<readonly JournalEntryBody[]> {
  if (since === null) {
    if (!last) return [];
    return (await client.cluster.journal({ limit: Math.min(last, PAGE) })).entries.toReversed();
  }
  const entries: JournalEntryBody[] = [];
  for (let cursor: string | null = null; ;) {
    const page = await client.cluster.journal({ limit: PAGE, ...(cursor !== null && { cursor }) });
    const wanted = page.entries.filter(({ at }) => at >= since);
    entries.push(...wanted);
    cursor = page.next_cursor;
    if (wanted.length < page.entries.length || cursor === null) return entries.toReversed();
  }
}
