/**
 * An upper bound for the current time of the server. Answers contain the server's time, read after the request was
 * sent, so that
 *
 *     time of the server now  <=  time in the answer + time since the request was sent
 *
 * holds unless its clock is set. A command can carry its own deadline in these terms, and the server refuses it when it
 * arrives too late: after the server was stalled, or from the buffer of a broken connection.
 */

import type { Clock } from "../../platform/clock.ts";

/** Answers that took longer say less; they count only while nothing better is known. */
const PROMPT_MS = 100;

export class ServerTime {
  readonly #clock: Clock;
  /** Server's clock minus our monotonic one, at most. */
  #ahead: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  learn(serverAt: number, sentAtMono: number): void {
    const tookMs = this.#clock.monotonic() - sentAtMono;
    if (this.#ahead === null || tookMs <= PROMPT_MS) this.#ahead = serverAt - sentAtMono;
  }

  /** Another server may be at the other end of the next connection. */
  forget(): void {
    this.#ahead = null;
  }

  latest(inMs: number): number | null {
    return this.#ahead === null ? null : Math.ceil(this.#ahead + this.#clock.monotonic() + inMs);
  }
}
