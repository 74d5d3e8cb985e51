/**
 * The latest events, as the leader has numbered them. They are kept so that a reader that lost its connection can
 * continue after the last one that it saw, also at another node, because the numbers are the same everywhere. Events
 * are hints, never the only copy of a fact; missing ones are reported as a gap.
 *
 *   7-41  7-42  7-43        8-45  8-46       <epoch of the leader>-<n>: n goes up by one, and by more where something is missing
 */

import { isLater, type Position, positionOf } from "../../core/event-position.ts";
import type { Role } from "../../core/leadership/role.ts";
import { Feed, type ServerEvent } from "../../platform/feed.ts";
import { Loop } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";

export type EventName =
  | "job.submitted"
  | "job.leased"
  | "job.started"
  | "job.updated"
  | "job.completed"
  | "job.failed"
  | "job.cancelled"
  | "result.accepted"
  | "result.rejected"
  | "result.duplicate"
  | "lease.expired"
  | "agent.seen"
  | "agent.removed"
  | "role.changed"
  | "leader.changed";

/** As it happened, before it has a number. */
export interface Happened {
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface EventLogOptions {
  readonly standing: () => {
    readonly role: Role;
    readonly epoch: number | null;
    readonly leader: string | null;
  };
  /** Whether the numbers are our own. */
  readonly leads: () => boolean;
  readonly onReaders?: (readers: number) => void;
}

interface Kept extends ServerEvent, Position {
  readonly id: string;
}

/** A busy leader writes some ten thousand in a second; longer outages are gaps, and a reader looks at the jobs then. */
const KEPT_MAX = 5_000;
/** Of one reader that does not keep up. Smaller, and a burst is a gap for everybody. */
const UNREAD_MAX = 5_000;
/** How late a reader hears of a change of leader, which nobody tells a standby of. */
const WATCH_MS = 250;

export class EventLog {
  readonly #platform: Pick<Platform, "clock" | "identity">;
  readonly #o: EventLogOptions;
  /** In the order of their numbers; up to twice as many as are given out, so that they are moved rarely. */
  #kept: Kept[] = [];
  #last: Position | null = null;
  readonly #feed = new Feed<ServerEvent | Kept>({
    max: UNREAD_MAX,
    kept: ([first], next) => [gap(first!.id ?? null, next.id ?? null, "the reader is too slow")],
  });
  #seen: ReturnType<EventLogOptions["standing"]>;
  /** Who leads, and whether it is us, is asked for while somebody reads. Of this node alone, so without a number. */
  readonly #watch: Loop;

  constructor(platform: Pick<Platform, "clock" | "identity">, options: EventLogOptions) {
    this.#platform = platform;
    this.#o = options;
    this.#seen = { role: "STANDBY", epoch: null, leader: null };
    this.#watch = new Loop(platform.clock, async () => {
      this.#compare();
      return WATCH_MS;
    });
  }

  get last(): Position | null {
    return this.#last;
  }

  /** What happened, from a number on. Without events it says how far the numbers are. What is known already is passed over. */
  append(epoch: number, first: number, happened: readonly Happened[]): void {
    const before = this.#last;
    const last: Position = { epoch, n: first + happened.length - 1 };
    if (before !== null && !isLater(last, before)) return;
    const from = before?.epoch === epoch ? Math.max(first, before.n + 1) : first;
    if (before !== null && !follows({ epoch, n: from }, before)) {
      const why = epoch === before.epoch ? "they did not get here" : "the leader changed";
      this.#feed.push(gap(idOf(before), from <= last.n ? idOf({ epoch, n: from }) : null, why));
    }
    for (let n = from; n <= last.n; n++) {
      const { event, data } = happened[n - first]!;
      const kept: Kept = { event, data, epoch, n, id: idOf({ epoch, n }) };
      this.#kept.push(kept);
      this.#feed.push(kept);
    }
    if (this.#kept.length >= 2 * KEPT_MAX) this.#kept = this.#kept.slice(-KEPT_MAX);
    this.#last = last;
  }

  /** Numbers that are not given out: whoever resumes from before them is told of a gap. Readers who are here have missed nothing. */
  skipTo(last: Position): void {
    this.#last = last;
  }

  /** What happens is not followed any more, or not yet: nothing is known. */
  forget(): void {
    this.#kept = [];
    this.#last = null;
  }

  /** First `hello`; then what was missed since, as far as it is kept; then what happens. */
  async *follow(since: string | null, signal: AbortSignal): AsyncGenerator<ServerEvent> {
    this.#o.onReaders?.(this.#feed.followers + 1);
    const { missed, after } = this.#since(since);
    const events = this.#feed.follow(signal);
    if (this.#feed.followers === 1) {
      this.#seen = this.#o.standing();
      this.#watch.start(WATCH_MS);
    }
    try {
      yield this.#hello();
      yield* missed;
      for await (const event of events) {
        // What the reader has seen elsewhere.
        const isSeen = after !== null && "n" in event && !isLater(event, after);
        if (!isSeen) yield event;
      }
    } finally {
      await events.return!();
      if (this.#feed.followers === 0) void this.#watch.stop();
      this.#o.onReaders?.(this.#feed.followers);
    }
  }

  #compare(): void {
    const before = this.#seen;
    const { role, epoch, leader } = (this.#seen = this.#o.standing());
    const node = this.#platform.identity.name;
    const ts = this.#now();
    if (epoch !== before.epoch || leader !== before.leader) {
      const data = { node_id: node, leader_id: leader, leader_epoch: epoch, ts };
      this.#feed.push({ event: "leader.changed", data });
    }
    if (role !== before.role) {
      const data = { node_id: node, role, previous: before.role, leader_epoch: epoch, ts };
      this.#feed.push({ event: "role.changed", data });
    }
  }

  #hello(): ServerEvent {
    const { role, epoch } = this.#o.standing();
    const last = this.#last && idOf(this.#last);
    const data = {
      node_id: this.#platform.identity.name,
      role,
      leader_epoch: epoch,
      last_event_id: last,
      ts: this.#now(),
    };
    return { event: "hello", data };
  }

  /** What a reader has missed, and what it has seen that did not get here yet. */
  #since(since: string | null): { readonly missed: readonly ServerEvent[]; readonly after: Position | null } {
    if (since === null) return { missed: [], after: null };
    const seen = positionOf(since);
    const last = this.#last;
    if (last === null || (isLater(seen, last) && !this.#mayBeAhead(seen))) {
      return { missed: [gap(since, null, "what happened since is not kept here")], after: null };
    }
    const missed: ServerEvent[] = [];
    let before = seen;
    for (const kept of this.#kept.slice(-KEPT_MAX)) {
      if (!isLater(kept, seen)) continue;
      if (!follows(kept, before))
        missed.push(gap(idOf(before), kept.id, "what happened in between is not kept here"));
      missed.push(kept);
      before = kept;
    }
    if (isLater(last, before)) missed.push(gap(idOf(before), null, "what happened since is not kept here"));
    return { missed, after: seen };
  }

  /** The reader comes from a node that heard it sooner. Nobody is sooner than the leader, or in a term that nobody knows of. */
  #mayBeAhead({ epoch }: Position): boolean {
    return !this.#o.leads() && epoch <= (this.#o.standing().epoch ?? 0);
  }

  #now(): string {
    return new Date(this.#platform.clock.now()).toISOString();
  }
}

function idOf({ epoch, n }: Position): string {
  return `${epoch}-${n}`;
}

function follows(next: Position, before: Position): boolean {
  return next.epoch === before.epoch && next.n === before.n + 1;
}

function gap(since: string | null, next: string | null, why: string): ServerEvent {
  return { event: "gap", data: { since, next, message: `events are missing here: ${why}` } };
}
