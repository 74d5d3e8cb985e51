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

export type LiveApi = Pick<LiveFeed, "overview" | "follow">;

const FRESH_MS = 1_000;
/** Entries of the journal that one look may bring; a reader that wants more asks for the list. */
const ENTRIES_MAX = 50;
/** Of a reader that does not keep up: it then gets the newest overview and misses entries. */
const UNREAD_MAX = 500;

export class LiveFeed {
  readonly #services: Omit<NodeServices, "live">;
  readonly #read: ReturnType<typeof overviewReader>;
  readonly #feed = new Feed<ServerEvent>({ max: UNREAD_MAX, kept: () => [] });
  readonly #cached: Cached<OverviewBody>;
  #seen: ReadonlySet<string> | null = null;
  #sent = "";
  #callOff: (() => void) | null = null;

  constructor(services: Omit<NodeServices, "live">) {
    this.#services = services;
    this.#read = overviewReader(services);
    this.#cached = new Cached(services.clock, FRESH_MS, () => this.#read(OUTSIDE));
  }

  overview(inbound: Inbound): Promise<OverviewBody> {
    // Another node asks once a second at most, and for our part alone.
    return inbound.from !== null ? this.#read(inbound) : this.#cached.read();
  }

  async *follow(signal: AbortSignal): AsyncGenerator<ServerEvent> {
    const events = this.#feed.follow(signal);
    this.#begin();
    try {
      yield overviewEvent(await this.overview(OUTSIDE));
      yield* events;
    } finally {
      await events.return!();
      if (this.#feed.followers === 0) this.#end();
    }
  }

  #begin(): void {
    if (this.#callOff) return;
    this.#seen = null;
    this.#sent = "";
    void this.#poll();
  }

  #end(): void {
    this.#callOff?.();
    this.#callOff = null;
  }

  async #poll(): Promise<void> {
    this.#callOff = this.#services.clock.after(FRESH_MS, () => void this.#poll());
    const [overview, entries] = await Promise.all([
      this.overview(OUTSIDE).catch(() => null),
      this.#newEntries().catch((): JournalEntryBody[] => []),
    ]);
    const events: ServerEvent[] = entries.map((entry) => ({ event: "journal", data: entry }));
    if (overview) {
      const text = whatMatters(overview);
      // The first reader has just got the first one.
      if (text !== this.#sent && this.#sent !== "") events.push(overviewEvent(overview));
      this.#sent = text;
    }
    for (const event of events) this.#feed.push(event);
  }

  /** Oldest first. What was written before the first reader came is not new. */
  async #newEntries(): Promise<JournalEntryBody[]> {
    const { entries } = await journalPage(this.#services, OUTSIDE, { limit: ENTRIES_MAX });
    const seen = this.#seen;
    this.#seen = new Set(entries.map(({ id }) => id));
    return seen ? entries.filter(({ id }) => !seen.has(id)).toReversed() : [];
  }
}

function whatMatters(body: OverviewBody): string {
  const leader = body.leader && { ...body.leader, lease_until: null };
  return JSON.stringify({ ...body, at: null, counted_at: null, leader });
}

function overviewEvent(body: OverviewBody): ServerEvent {
  return { event: "overview", data: body };
}
