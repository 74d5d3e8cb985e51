/**
 * What happens at this node through the controller API, for whoever watches: the last events are kept, so that a reader who lost its
 * connection goes on behind the last one that it saw. A hint, never the only copy of a fact; what was lost in between is told as a gap.
 */

import type { ServerEvent } from "../api/operation.ts";
import type { Role } from "../core/role.ts";
import type { Clock } from "../platform/clock.ts";

export type EventName =
  | "job.submitted"
  | "job.leased"
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

export interface EventLogOptions {
  readonly node: string;
  readonly clock: Clock;
  /** As they are now. */
  readonly standing: () => {
    readonly role: Role;
    readonly epoch: number | null;
    readonly leader: string | null;
  };
}

interface Kept extends ServerEvent {
  readonly id: string;
  readonly n: number;
}

/** A busy leader writes some ten thousand in a second; longer outages are gaps, and a reader looks at the jobs then. */
const KEPT_MAX = 5_000;
/** Of one reader that does not keep up. Smaller, and a burst is a gap for everybody. */
const UNREAD_MAX = 5_000;
/** How late a reader hears of a change of leader, which nobody tells a standby of. */
const WATCH_MS = 250;

export class EventLog {
  readonly #o: EventLogOptions;
  /** A ring: the event with number n is at n % KEPT_MAX. */
  readonly #kept: Kept[] = [];
  #count = 0;
  readonly #readers = new Set<(event: Kept) => void>();
  #seen: ReturnType<EventLogOptions["standing"]>;
  #cancelWatch: (() => void) | null = null;

  constructor(options: EventLogOptions) {
    this.#o = options;
    this.#seen = { role: "STANDBY", epoch: null, leader: null };
  }

  get readers(): number {
    return this.#readers.size;
  }

  emit(event: EventName, data: Readonly<Record<string, unknown>>): void {
    const { standing, clock } = this.#o;
    const n = ++this.#count;
    const id = `${standing().epoch ?? 0}-${n}`;
    const kept: Kept = { event, id, n, data: { ...data, ts: new Date(clock.now()).toISOString() } };
    this.#kept[n % KEPT_MAX] = kept;
    for (const tell of this.#readers) tell(kept);
  }

  /** First `hello`; then what was missed since, as far as it is kept; then what happens. */
  async *follow(since: string | null, signal: AbortSignal): AsyncGenerator<ServerEvent> {
    let unread: ServerEvent[] = [];
    let wake = (): void => {};
    const end = (): void => wake();
    const tell = (event: Kept): void => {
      if (unread.length >= UNREAD_MAX)
        unread = [gap(unread[0]!.id ?? null, event.id, "the reader is too slow")];
      unread.push(event);
      wake();
    };
    const missed = this.#since(since);
    this.#readers.add(tell);
    this.#watch();
    signal.addEventListener("abort", end, { once: true });
    try {
      yield this.#hello();
      yield* missed;
      while (!signal.aborted) {
        const events = unread;
        unread = [];
        yield* events;
        if (unread.length > 0 || signal.aborted) continue;
        await new Promise<void>((resolve) => (wake = resolve));
        wake = () => {};
      }
    } finally {
      signal.removeEventListener("abort", end);
      this.#readers.delete(tell);
      if (this.#readers.size === 0) this.#cancelWatch?.();
    }
  }

  /** Who leads, and whether it is us, is asked for while somebody reads. */
  #watch(): void {
    if (this.#readers.size === 1) this.#seen = this.#o.standing();
    else return;
    const look = (): void => {
      this.#cancelWatch = this.#o.clock.after(WATCH_MS, look);
      this.#compare();
    };
    this.#cancelWatch = this.#o.clock.after(WATCH_MS, look);
  }

  #compare(): void {
    const before = this.#seen;
    const { role, epoch, leader } = (this.#seen = this.#o.standing());
    const { node } = this.#o;
    if (epoch !== before.epoch || leader !== before.leader)
      this.emit("leader.changed", { node_id: node, leader_id: leader, leader_epoch: epoch });
    if (role !== before.role)
      this.emit("role.changed", { node_id: node, role, previous: before.role, leader_epoch: epoch });
  }

  #hello(): ServerEvent {
    const { node, clock, standing } = this.#o;
    const { role, epoch } = standing();
    const ts = new Date(clock.now()).toISOString();
    return { event: "hello", data: { node_id: node, role, leader_epoch: epoch, ts } };
  }

  #since(since: string | null): ServerEvent[] {
    if (since === null) return [];
    const n = Number(since.slice(since.indexOf("-") + 1));
    const oldest = Math.max(1, this.#count - KEPT_MAX + 1);
    // The number alone does not tell: another node, or an earlier life of this one, may have given it out too.
    const known = this.#at(n)?.id === since;
    const events: ServerEvent[] = [];
    if (!known) events.push(gap(since, this.#at(oldest)?.id ?? null, "what happened since is not kept here"));
    for (let at = known ? n + 1 : oldest; at <= this.#count; at++) events.push(this.#at(at)!);
    return events;
  }

  #at(n: number): Kept | undefined {
    const kept = this.#kept[n % KEPT_MAX];
    return kept?.n === n ? kept : undefined;
  }
}

function gap(since: string | null, next: string | null, why: string): ServerEvent {
  return { event: "gap", data: { since, next, message: `events are missing here: ${why}` } };
}
