/**
 * What time it is at the server, at the latest. It is told in answers: read there after the question was sent, so that
 *
 *     time of the server now  <=  what it said + time since the question was sent
 *
 * holds as long as its clock is not set. A command can carry its own deadline in these terms, and the server refuses it when
 * it comes too late: after it stood still, or after it lay in the buffer of a broken connection.
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
