/**
 * The leader lock of one role in Redis.
 *
 * A standby waits for the end of the lease, for a release, or for the end of the leader's connection to Redis. The last
 * is only evidence: a leader that lost its connection but is alive may be superseded; it finds out with its next renewal,
 * and until then the store refuses its writes.
 */

import type { Term } from "../../core/leadership/term.ts";
import { AdmittedLock, type AdmittedLockOptions, type GrantRequest } from "../admitted-lock.ts";
import type { Tenure } from "../coordination.ts";
import type { ControlSession } from "./control-session.ts";
import { LeaderRecord } from "./leader-record.ts";
import type { IncarnationWatch } from "./incarnation-watch.ts";

export class RedisLock extends AdmittedLock<{ readonly term: Term }> {
  protected readonly outdated = "Redis had forgotten the last epoch";
  readonly #control: ControlSession;
  readonly #watch: IncarnationWatch;
  readonly #scripts: LeaderRecord;
  /** The channel of the incarnation that holds the current term, if it was seen to end. */
  #gone = "";
  #watching: { readonly channel: string; readonly end: () => void } | null = null;

  constructor(options: AdmittedLockOptions, control: ControlSession, watch: IncarnationWatch) {
    super(options);
    this.#control = control;
    this.#watch = watch;
    this.#scripts = new LeaderRecord(control, options.role);
  }

  protected async tryGrant(request: GrantRequest): Promise<{ readonly term: Term } | "held"> {
    const grant = await this.#scripts.grant(request, this.#gone, this.#deadlineMs(request.ttlMs));
    if ("term" in grant) return grant;
    const { epoch, leftMs, channel } = grant;
    this.#watchHolder(this.#control.ownChannel === "" ? "" : channel);
    // One that does not ask again by then is no longer a candidate.
    this.wait(epoch, leftMs, () => this.#unwatch());
    return "held";
  }

  protected onAdmitted(): void {
    this.#unwatch();
  }

  protected giveBack({ term }: { readonly term: Term }): Promise<void> {
    return this.giveUp(term);
  }

  protected tryRenew(term: Term, ttlMs: number): Promise<boolean> {
    return this.#scripts.renew(term, ttlMs, this.#deadlineMs(ttlMs));
  }

  protected giveUp(term: Term): Promise<void> {
    return this.#scripts.release(term);
  }

  protected readTenure(): Promise<Tenure | null> {
    return this.#scripts.tenure();
  }

  protected onStop(): void {
    this.#unwatch();
  }

  /** A watch goes on from attempt to attempt: a new one would have to see the channel first. */
  #watchHolder(channel: string): void {
    if (channel !== "" && this.#watching?.channel === channel) return;
    this.#unwatch();
    if (channel === "") return;
    const end = this.#watch.watch(channel, () => {
      this.#watching = null;
      this.#gone = channel;
      this.hint();
    });
    this.#watching = { channel, end };
  }

  #unwatch(): void {
    this.#watching?.end();
    this.#watching = null;
    this.#gone = "";
  }

  /** A third of the lease at most, so that a renewal which hangs can be followed by another. */
  #deadlineMs(ttlMs: number): number {
    return Math.min(this.#control.commandMs, Math.ceil(ttlMs / 3));
  }
}
