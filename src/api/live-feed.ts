/**
 * Live changes of the cluster: one read per second for all readers, and none without readers.
 *
 *   overview   at once, then when something has changed, at most once a second
 *   journal    each entry that is written while there is a reader
 */

import { Cached } from "../platform/cached.ts";
import { Feed, type ServerEvent } from "../platform/feed.ts";
import { OUTSIDE, type Inbound } from "../transport/hop-headers.ts";
import { type JournalEntryBody, journalPage } from "./operations/cluster/journal.ts";
import { type OverviewBody, overviewReader } from "./overview.ts";
import type { NodeServices } from "./node-services.ts";

export type LiveApi = ReturnType<typeof liveFeed>;

const FRESH_MS = 1_000;
/** Entries of the journal that one look may bring; a reader that wants more asks for the list. */
const ENTRIES_MAX = 50;
/** Of a reader that does not keep up: it then gets the newest overview and misses entries. */
const UNREAD_MAX = 500;

export function liveFeed(services: Omit<NodeServices, "live">) {
  const { clock } = services;
  const read = overviewReader(services);
  const cached = new Cached(clock, FRESH_MS, () => read(OUTSIDE));
  const feed = new Feed<ServerEvent>({ max: UNREAD_MAX, kept: () => [] });
  let seen: ReadonlySet<string> | null = null;
  let sent = "";
  /** Ends the polling; null while there is no reader. */
  let callOff: (() => void) | null = null;

  /** Oldest first. What was written before the first reader came is not new. */
  async function newEntries(): Promise<JournalEntryBody[]> {
    const { entries } = await journalPage(services, OUTSIDE, { limit: ENTRIES_MAX });
    const before = seen;
    seen = new Set(entries.map(({ id }) => id));
    return before ? entries.filter(({ id }) => !before.has(id)).toReversed() : [];
  }

  async function poll(): Promise<void> {
    callOff = clock.after(FRESH_MS, () => void poll());
    const [overview, entries] = await Promise.all([
      cached.read().catch(() => null),
      newEntries().catch((): JournalEntryBody[] => []),
    ]);
    for (const entry of entries) feed.push({ event: "journal", data: entry });
    if (!overview) return;
    const text = whatMatters(overview);
    // The first reader has just got the first one.
    if (text !== sent && sent !== "") feed.push(overviewEvent(overview));
    sent = text;
  }

  return {
    // Another node asks once a second at most, and for our part alone.
    overview: (inbound: Inbound): Promise<OverviewBody> =>
      inbound.from !== null ? read(inbound) : cached.read(),

    async *follow(signal: AbortSignal): AsyncGenerator<ServerEvent> {
      const events = feed.follow(signal);
      if (!callOff) {
        seen = null;
        sent = "";
        void poll();
      }
      try {
        yield overviewEvent(await cached.read());
        yield* events;
      } finally {
        await events.return!();
        if (feed.followers === 0) {
          callOff?.();
          callOff = null;
        }
      }
    },
  };
}

function whatMatters(body: OverviewBody): string {
  const leader = body.leader && { ...body.leader, lease_until: null };
  return JSON.stringify({ ...body, at: null, counted_at: null, leader });
}

function overviewEvent(body: OverviewBody): ServerEvent {
  return { event: "overview", data: body };
}
