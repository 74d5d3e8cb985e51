/**
 * A worker's hold on all jobs that it has claimed: one renewal keeps them all. It is trusted until the send time of the
 * last acknowledged renewal plus its length, on the worker's own monotonic clock; past that others may run the jobs.
 */

import type { JobId, LeaseId } from "../core/ids.ts";
import type { NodeIdentity } from "../core/node.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Store } from "../store/store.ts";

export interface WorkerLeaseOptions {
  readonly store: Pick<Store, "jobs">;
  readonly clock: Clock;
  readonly log: Log;
  readonly identity: NodeIdentity;
  readonly leaseMs: number;
  readonly renewMs: number;
  /** Whether there is anything to hold. */
  readonly needed: () => boolean;
  readonly onLost: (why: string) => void;
  readonly onCancelWish: (id: JobId, reason: string | null) => void;
}

export class WorkerLease {
  readonly #o: WorkerLeaseOptions;
  #id: LeaseId;
  #count = 0;
  #trustedUntil = Infinity;
  #cancelRenewal: (() => void) | null = null;

  constructor(options: WorkerLeaseOptions) {
    this.#o = options;
    this.#id = this.#next();
  }

  get id(): LeaseId {
    return this.#id;
  }

  /** A claim under this lease, sent then, has been granted. */
  prolonged(sentAt: number): void {
    this.#trustedUntil = sentAt + this.#o.leaseMs;
  }

  start(): void {
    this.#cancelRenewal = this.#o.clock.after(this.#o.renewMs, () => void this.#renew());
  }

  stop(): void {
    this.#cancelRenewal?.();
    this.#cancelRenewal = null;
  }

  async #renew(): Promise<void> {
    const { clock, log, store, leaseMs, needed, onCancelWish } = this.#o;
    const renewal = this.#cancelRenewal;
    if (needed()) {
      const sentAt = clock.monotonic();
      try {
        const { held, cancelled } = await store.jobs.renew(this.#id, leaseMs);
        if (held) this.prolonged(sentAt);
        else this.#lose("it was taken away");
        for (const wish of cancelled) onCancelWish(wish.id, wish.reason);
      } catch (error) {
        log.warn({ err: error }, "could not renew the lease");
      }
      if (clock.monotonic() > this.#trustedUntil) this.#lose("it ran out before it could be renewed");
    }
    // Stopped, or stopped and started, while the store answered?
    if (renewal !== null && this.#cancelRenewal === renewal) this.start();
  }

  #lose(why: string): void {
    this.#id = this.#next();
    this.#trustedUntil = Infinity;
    this.#o.onLost(why);
  }

  #next(): LeaseId {
    const { name, incarnation } = this.#o.identity;
    return `${name}/${incarnation}/${this.#count++}` as LeaseId;
  }
}
