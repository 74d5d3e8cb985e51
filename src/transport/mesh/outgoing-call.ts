/** A call of this node on a shared connection. Each call ends exactly once. */

import type { Clock } from "../../platform/clock.ts";
import { CALLED_OFF, tooLate, unknown } from "../outcome.ts";
import type { CallOptions, Outcome } from "../transport.ts";

/** Fetches a reply that the peer keeps under a ticket. */
export type FetchReply = (ticket: string, options: CallOptions) => Promise<Outcome>;

export interface OutgoingCallOptions {
  /** The frame that it was written into. */
  readonly frame: number;
  readonly clock: Clock;
  readonly options: CallOptions;
  readonly fetch: FetchReply;
  /** The caller does not wait any more. */
  readonly leave: () => void;
}

export class OutgoingCall {
  readonly outcome: Promise<Outcome>;
  readonly frame: number;
  readonly #o: OutgoingCallOptions;
  readonly #endsAt: number;
  readonly #resolve: (outcome: Outcome) => void;
  readonly #cancelDeadline: () => void;

  constructor(options: OutgoingCallOptions) {
    const { frame, clock } = options;
    const { deadlineMs, signal } = options.options;
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    this.outcome = promise;
    this.frame = frame;
    this.#o = options;
    this.#resolve = resolve;
    this.#endsAt = clock.monotonic() + deadlineMs;
    this.#cancelDeadline = clock.after(deadlineMs, () => this.#giveUp(tooLate(options.options)));
    signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  finish(outcome: Outcome): void {
    this.#cancelDeadline();
    this.#o.options.signal?.removeEventListener("abort", this.#onAbort);
    this.#resolve(outcome);
  }

  /** The peer has carried the call out: without the reply its outcome is unknown, whatever became of the fetch. */
  fetch(ticket: string): void {
    const { fetch, options, clock } = this.#o;
    void fetch(ticket, { ...options, deadlineMs: this.#endsAt - clock.monotonic() }).then((outcome) =>
      this.finish(outcome.outcome === "reply" ? outcome : unknown(outcome.reason)),
    );
  }

  readonly #onAbort = (): void => this.#giveUp(CALLED_OFF);

  #giveUp(reason: string): void {
    this.finish(unknown(reason));
    this.#o.leave();
  }
}
