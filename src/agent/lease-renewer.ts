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

import type { LeaseBody, RenewedBody, RenewRequest } from "../client/controller-calls.ts";
import type { JobId, LeaseId } from "../core/ids.ts";
import { Loop, type Backoff } from "../platform/loop.ts";
import type { Run } from "../store/store.ts";
import type { FromLink, LinkContext } from "./link-messages.ts";

type Send = (message: Extract<FromLink, { say: "lost" | "cancel" }>) => void;

interface Lease {
  readonly id: LeaseId;
  /** Of the leader that granted or last renewed it. */
  epoch: number;
  expiresInMs: number;
  /** Monotonic. */
  trustedUntil: number;
  /** Refused by a leader, or let go: nothing more is to be had from it. */
  over: boolean;
  readonly jobs: Set<string>;
  readonly backoff: Backoff;
  /** Others may run its jobs; their handlers have been aborted. */
  lost: boolean;
  /** One answer for all that ask at the same time. */
  renewing: Promise<void> | null;
  readonly renewals: Loop;
  cancelExpiry: () => void;
}

/** What one node may take to answer. Longer, and a node that hangs costs half of a lease; shorter, and a busy one looks dead. */
const CALL_TIMEOUT_MS = 5_000;

export class LeaseRenewer {
  readonly #link: LinkContext;
  readonly #send: Send;
  readonly #leases = new Map<LeaseId, Lease>();
  readonly #stopped = new AbortController();

  constructor(link: LinkContext, send: Send) {
    this.#link = link;
    this.#send = send;
  }

  /** Leased, and neither settled nor forgotten. */
  get jobs(): number {
    return [...this.#leases.values()].reduce((sum, { jobs }) => sum + jobs.size, 0);
  }

  open({ lease_id, leader_epoch: epoch, expires_in_ms: expiresInMs, tasks }: LeaseBody): void {
    const lease: Lease = {
      id: lease_id as LeaseId,
      epoch,
      expiresInMs,
      trustedUntil: this.#link.platform.clock.monotonic() + expiresInMs,
      over: false,
      jobs: new Set(tasks.map(({ job_id }) => job_id)),
      backoff: this.#link.leader.backoff(),
      lost: false,
      renewing: null,
      renewals: new Loop(this.#link.platform.clock, () => this.#renewNow(lease)),
      cancelExpiry: () => {},
    };
    this.#leases.set(lease.id, lease);
    lease.renewals.start(expiresInMs / 3);
    this.#watch(lease);
  }

  get(id: LeaseId): Readonly<Pick<Lease, "epoch" | "over">> | undefined {
    return this.#leases.get(id);
  }

  settled({ lease: id, id: job }: Run): void {
    const lease = this.#leases.get(id);
    if (!lease) return;
    lease.jobs.delete(job);
    if (lease.jobs.size === 0) this.#close(lease);
  }

  /** Asks whoever leads now. Rejects when nobody answers; a lease that was refused is `over` afterwards. */
  renew(id: LeaseId): Promise<void> {
    const lease = this.#leases.get(id);
    if (!lease || lease.over) return Promise.resolve();
    lease.renewing ??= this.#ask(lease).finally(() => (lease.renewing = null));
    return lease.renewing;
  }

  /** Renews those of an earlier leader than the one that is known now. One that nobody renews is found out by a refusal. */
  async renewOld(ids: Iterable<LeaseId>): Promise<void> {
    const old = [...ids].filter((id) => (this.#leases.get(id)?.epoch ?? Infinity) < this.#link.leader.epoch);
    await Promise.all(old.map((id) => this.renew(id)));
  }

  /**
   * Whether what was refused with STALE_EPOCH under this epoch may be posted again: the leader has changed, and a renewal gave
   * another epoch. Otherwise the job has moved on.
   */
  async hasNewEpoch(id: LeaseId, epoch: number): Promise<boolean> {
    const lease = this.#leases.get(id);
    if (lease?.epoch === epoch) await this.renew(id);
    return lease !== undefined && !lease.over && lease.epoch !== epoch;
  }

  stop(): void {
    this.#stopped.abort();
    for (const lease of this.#leases.values()) this.#close(lease);
  }

  async #ask(lease: Lease): Promise<void> {
    const { clock, log } = this.#link.platform;
    const sentAt = clock.monotonic();
    const request: RenewRequest = { agent: this.#link.agent, lease_id: lease.id };
    const timeoutMs = Math.min(CALL_TIMEOUT_MS, Math.max(lease.expiresInMs / 3, 100));
    const options = { timeoutMs, signal: this.#stopped.signal };
    const body = (): string => JSON.stringify(request);
    const { status, json } = await this.#link.leader.postToLeader("/v1/leases/renew", body, options);
    if (status === 200) return this.#renewed(lease, json as RenewedBody, sentAt);
    const { error, message } = (json ?? {}) as Partial<Record<string, unknown>>;
    if (error !== "STALE_EPOCH")
      log.error({ lease: lease.id, status, error, message }, "a lease was not renewed");
    lease.over = true;
    this.#lose(lease, "it was taken away");
  }

  #renewed(lease: Lease, body: RenewedBody, sentAt: number): void {
    lease.epoch = body.leader_epoch;
    lease.expiresInMs = body.expires_in_ms;
    lease.trustedUntil = Math.max(lease.trustedUntil, sentAt + body.expires_in_ms);
    lease.backoff.reset();
    for (const { job_id: id, reason } of body.cancelled ?? [])
      this.#send({ say: "cancel", id: id as JobId, reason });
    if (lease.over || lease.lost) return;
    // Whoever asked for it: the next one counts from here, and another leader may give shorter leases.
    lease.renewals.start(lease.expiresInMs / 3);
    this.#watch(lease);
  }

  async #renewNow(lease: Lease): Promise<number> {
    try {
      await this.renew(lease.id);
      return Infinity; // the answer has begun the next wait
    } catch (error) {
      const { log } = this.#link.platform;
      if (lease.backoff.failures === 0 && !this.#stopped.signal.aborted)
        log.warn({ err: error, lease: lease.id }, "could not renew a lease; trying again");
      return lease.backoff.next();
    }
  }

  /** The end of a lease waits neither for the answer to a renewal nor for the next one. */
  #watch(lease: Lease): void {
    const { clock } = this.#link.platform;
    lease.cancelExpiry();
    lease.cancelExpiry = clock.after(Math.max(lease.trustedUntil - clock.monotonic(), 1), () =>
      this.#lose(lease, "it ran out before it could be renewed"),
    );
  }

  #lose(lease: Lease, why: string): void {
    void lease.renewals.stop();
    lease.cancelExpiry();
    if (lease.lost) return;
    lease.lost = true;
    this.#send({ say: "lost", lease: lease.id, why });
  }

  #close(lease: Lease): void {
    lease.over = true;
    void lease.renewals.stop();
    lease.cancelExpiry();
    this.#leases.delete(lease.id);
  }
}
