/**
 * The lease of a worker on all jobs that it has claimed; one renewal covers all. It is trusted until the send time of the last
 * acknowledged renewal plus its length, on the worker's own monotonic clock; after that others may run the jobs.
 *
 *   fresh ──a claim gives something──> held ──refused, or not trusted any more──> lost
 *     ^                                  |
 *     |                                  '──a claim's answer is lost──> retired ──nothing left under it──> let go
 *     '── the next one takes its place, whenever one is lost or retired
 *
 * Jobs of a claim whose answer is lost are unknown. They are recovered when the retired lease is let go and expires.
 */

import type { LeaseId } from "../../core/ids.ts";
import type { Platform } from "../../platform/platform.ts";
import type { Store } from "../../store/store.ts";
import { emitNotRenewed } from "./run-writes.ts";
import type { LeaseListener } from "./worker-ports.ts";

export type LeasePlatform = Pick<Platform, "clock" | "log" | "events" | "identity">;

export interface WorkerLeaseOptions extends LeaseListener {
  readonly store: Pick<Store, "jobs">;
  readonly leaseMs: number;
  readonly renewMs: number;
}

interface Hold {
  trustedUntil: number;
  /** Claims that gave something. */
  grants: number;
}

export class WorkerLease {
  readonly #o: LeasePlatform & WorkerLeaseOptions;
  readonly #holds = new Map<LeaseId, Hold>();
  #id: LeaseId;
  #count = 0;
  #cancelRenewal: (() => void) | null = null;
  #cancelWatch: (() => void) | null = null;

  constructor({ clock, log, events, identity }: LeasePlatform, options: WorkerLeaseOptions) {
    this.#o = { clock, log, events, identity, ...options };
    this.#id = this.#next();
  }

  get id(): LeaseId {
    return this.#id;
  }

  /** Whether the next claim may open the lease: nothing is under it that could have been lost with it. */
  get opens(): boolean {
    return !this.#holds.has(this.#id) || !this.#o.needed(this.#id);
  }

  holds(lease: LeaseId): boolean {
    return this.#holds.has(lease);
  }

  /** A claim sent then has given something. False when the lease was lost meanwhile: it is not renewed any more. */
  granted(lease: LeaseId, sentAt: number): boolean {
    const hold = this.#holds.get(lease);
    if (!hold && lease !== this.#id) return false;
    const trustedUntil = Math.max(hold?.trustedUntil ?? 0, sentAt + this.#o.leaseMs);
    this.#holds.set(lease, { trustedUntil, grants: (hold?.grants ?? 0) + 1 });
    return true;
  }

  refused(lease: LeaseId): void {
    if (lease === this.#id) this.#lose(lease, "it was taken away");
  }

  /** A claim was not answered: it may have given jobs that no worker will run. */
  retire(lease: LeaseId): void {
    if (lease === this.#id) this.#id = this.#next();
  }

  start(): void {
    this.#cancelRenewal = this.#o.clock.after(this.#o.renewMs, () => void this.#renewAll());
  }

  stop(): void {
    this.#cancelRenewal?.();
    this.#cancelRenewal = null;
    this.#cancelWatch?.();
    this.#cancelWatch = null;
  }

  async #renewAll(): Promise<void> {
    const renewal = this.#cancelRenewal;
    const leases = [...this.#holds.keys()].filter((lease) => this.#stillNeeded(lease));
    this.#watch();
    await Promise.all(leases.map((lease) => this.#renew(lease)));
    // Stopped, or stopped and started, while the store answered?
    if (renewal !== null && this.#cancelRenewal === renewal) this.start();
  }

  #stillNeeded(lease: LeaseId): boolean {
    if (this.#o.needed(lease)) return true;
    if (lease !== this.#id) this.#holds.delete(lease);
    return false;
  }

  async #renew(lease: LeaseId): Promise<void> {
    const { clock, log, events, store, leaseMs, onCancelRequest } = this.#o;
    for (let hold = this.#holds.get(lease); hold; hold = this.#holds.get(lease)) {
      const sentAt = clock.monotonic();
      try {
        const { held, cancelled } = await store.jobs.renew(lease, leaseMs);
        if (!held) emitNotRenewed(events, lease);
        for (const { id, reason } of cancelled) onCancelRequest(id, reason);
        const known = this.#holds.get(lease);
        if (!known) return;
        // A claim that opened the lease anew may have overtaken the renewal: ask again.
        if (!held && known.grants !== hold.grants) continue;
        if (!held) return this.#lose(lease, "it was taken away");
        known.trustedUntil = Math.max(known.trustedUntil, sentAt + leaseMs);
      } catch (error) {
        log.warn({ err: error }, "could not renew the lease");
      }
      return;
    }
  }

  /** The end of a lease waits neither for the answer to a renewal nor for the next one. */
  #watch(): void {
    const { clock, needed } = this.#o;
    this.#cancelWatch?.();
    const held = [...this.#holds].filter(([lease]) => needed(lease));
    if (held.length === 0) return;
    const endsAt = Math.min(...held.map(([, hold]) => hold.trustedUntil));
    this.#cancelWatch = clock.after(Math.max(endsAt - clock.monotonic(), 1), () => {
      this.#loseExpired();
      this.#watch();
    });
  }

  #loseExpired(): void {
    const now = this.#o.clock.monotonic();
    for (const [lease, { trustedUntil }] of this.#holds) {
      if (now < trustedUntil || !this.#o.needed(lease)) continue;
      this.#lose(lease, "it ran out before it could be renewed");
    }
  }

  #lose(lease: LeaseId, why: string): void {
    this.#holds.delete(lease);
    if (lease === this.#id) this.#id = this.#next();
    this.#o.onLost(lease, why);
  }

  #next(): LeaseId {
    const { name, incarnation } = this.#o.identity;
    return `${name}/${incarnation}/${this.#count++}` as LeaseId;
  }
}
