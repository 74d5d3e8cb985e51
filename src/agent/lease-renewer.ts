/**
 * Renews the leases of an agent: one for each batch of jobs, after a third of its duration, each at the current leader.
 * A renewal also returns the epoch under which results may be posted, and the jobs to cancel.
 *
 *   open ──the last job is settled──> closed
 *     |
 *     '──refused, or not renewed in time──> lost: reported once; only results that are finished already are still tried
 *
 * A lease is trusted from the moment its answer arrived, and later from the moment its last successful renewal was
 * sent. The first is too long by the transit time of that answer, because a long poll does not say when the lease was
 * granted; the epochs protect the results in any case.
 */

import type { RenewedBody, RenewRequest } from "../client/controller-calls.ts";
import type { LeaderConnection } from "../client/connection/leader-connection.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import { BackOff } from "./back-off.ts";
import type { RunKey } from "./controller-link-messages.ts";

export interface LeaseRenewerOptions {
  readonly agent: string;
  readonly leader: LeaderConnection;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly onLost: (lease: string, why: string) => void;
  readonly onCancel: (run: RunKey, reason: string | null) => void;
}

export interface Lease {
  readonly id: string;
  /** Of the leader that granted or last renewed it. */
  epoch: number;
  expiresInMs: number;
  /** Monotonic. */
  trustedUntil: number;
  /** Refused by a leader, or let go: nothing more is to be had from it. */
  over: boolean;
}

interface Kept extends Lease {
  readonly jobs: Set<string>;
  readonly backOff: BackOff;
  /** Others may run its jobs: their handlers were told. */
  lost: boolean;
  renewing: Promise<void> | null;
  cancelRenewal: () => void;
  cancelExpiry: () => void;
}

/** What one node may take to answer. Longer, and a node that hangs costs half of a lease; shorter, and a busy one looks dead. */
const CALL_TIMEOUT_MS = 5_000;

export class LeaseRenewer {
  readonly #o: LeaseRenewerOptions;
  readonly #leases = new Map<string, Kept>();
  readonly #stopped = new AbortController();

  constructor(options: LeaseRenewerOptions) {
    this.#o = options;
  }

  /** Leased and not settled. */
  get jobs(): number {
    return [...this.#leases.values()].reduce((sum, { jobs, lost }) => sum + (lost ? 0 : jobs.size), 0);
  }

  open(id: string, epoch: number, expiresInMs: number, jobs: readonly string[]): void {
    const { clock } = this.#o;
    const lease: Kept = {
      id,
      epoch,
      expiresInMs,
      trustedUntil: clock.monotonic() + expiresInMs,
      over: false,
      jobs: new Set(jobs),
      backOff: new BackOff(this.#o),
      lost: false,
      renewing: null,
      cancelRenewal: () => {},
      cancelExpiry: () => {},
    };
    this.#leases.set(id, lease);
    this.#renewLater(lease);
    this.#watch(lease);
  }

  get(id: string): Lease | undefined {
    return this.#leases.get(id);
  }

  /** There is nothing more to say of this job. */
  settled({ lease: id, id: job }: RunKey): void {
    const lease = this.#leases.get(id);
    if (!lease) return;
    lease.jobs.delete(job);
    if (lease.jobs.size === 0) this.#close(lease);
  }

  /** Asks whoever leads now. Rejects when nobody answers; a lease that was refused is `over` afterwards. */
  renew(id: string): Promise<void> {
    const lease = this.#leases.get(id);
    if (!lease || lease.over) return Promise.resolve();
    lease.renewing ??= this.#ask(lease).finally(() => (lease.renewing = null));
    return lease.renewing;
  }

  stop(): void {
    this.#stopped.abort();
    for (const lease of this.#leases.values()) this.#close(lease);
  }

  async #ask(lease: Kept): Promise<void> {
    const { agent, leader, clock, log } = this.#o;
    const sentAt = clock.monotonic();
    const { status, body } = await leader.call({
      method: "POST",
      path: "/v1/leases/renew",
      body: JSON.stringify({ agent, lease_id: lease.id } satisfies RenewRequest),
      timeoutMs: Math.min(CALL_TIMEOUT_MS, Math.max(lease.expiresInMs / 3, 100)),
      signal: this.#stopped.signal,
    });
    if (status === 200) return this.#renewed(lease, body as RenewedBody, sentAt);
    const { error, message } = (body ?? {}) as Partial<Record<string, unknown>>;
    if (error !== "STALE_EPOCH")
      log.error({ lease: lease.id, status, error, message }, "a lease was not renewed");
    lease.over = true;
    this.#lose(lease, "it was taken away");
  }

  #renewed(lease: Kept, body: RenewedBody, sentAt: number): void {
    lease.epoch = body.leader_epoch;
    lease.expiresInMs = body.expires_in_ms;
    lease.trustedUntil = Math.max(lease.trustedUntil, sentAt + body.expires_in_ms);
    lease.backOff.succeeded();
    for (const { job_id: id, job_epoch: jobEpoch, reason } of body.cancelled ?? [])
      this.#o.onCancel({ lease: lease.id, id, jobEpoch }, reason);
    if (lease.over || lease.lost) return;
    this.#renewLater(lease);
    this.#watch(lease);
  }

  #renewLater(lease: Kept): void {
    lease.cancelRenewal();
    lease.cancelRenewal = this.#o.clock.after(
      lease.expiresInMs / 3,
      () => void this.#renewUntilAnswered(lease),
    );
  }

  async #renewUntilAnswered(lease: Kept): Promise<void> {
    while (!lease.over && !lease.lost) {
      try {
        return await this.renew(lease.id);
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        if (lease.backOff.failures === 0)
          this.#o.log.warn({ err: error, lease: lease.id }, "could not renew a lease; trying again");
        await lease.backOff.failed(this.#stopped.signal);
      }
    }
  }

  /** The end of a lease waits neither for the answer to a renewal nor for the next one. */
  #watch(lease: Kept): void {
    const { clock } = this.#o;
    lease.cancelExpiry();
    lease.cancelExpiry = clock.after(Math.max(lease.trustedUntil - clock.monotonic(), 1), () => {
      if (clock.monotonic() < lease.trustedUntil) this.#watch(lease);
      else this.#lose(lease, "it ran out before it could be renewed");
    });
  }

  #lose(lease: Kept, why: string): void {
    lease.cancelRenewal();
    lease.cancelExpiry();
    if (lease.lost) return;
    lease.lost = true;
    this.#o.onLost(lease.id, why);
  }

  #close(lease: Kept): void {
    lease.over = true;
    lease.cancelRenewal();
    lease.cancelExpiry();
    this.#leases.delete(lease.id);
  }
}
