/** Pings a silent peer, and reports when no answer arrives. */

import type { Clock } from "../../platform/clock.ts";

export interface KeepAliveOptions {
  readonly clock: Clock;
  /** After so long without a frame a ping is sent, */
  readonly pingMs: number;
  /** and after so long the peer is considered gone. Below a few pings a busy machine looks dead. */
  readonly silentMs: number;
  readonly ping: () => void;
  /** True while this side does not read, so that silence means nothing. */
  readonly deaf: () => boolean;
  readonly onSilent: (reason: string) => void;
}

export class KeepAlive {
  readonly #o: KeepAliveOptions;
  #heard = false;
  #silentSince: number;
  #due: number;
  #cancel: () => void;

  constructor(options: KeepAliveOptions) {
    const { clock, pingMs } = options;
    this.#o = options;
    this.#silentSince = clock.monotonic();
    this.#due = this.#silentSince + pingMs;
    this.#cancel = clock.after(pingMs, () => this.#check());
  }

  heard(): void {
    this.#heard = true;
  }

  stop(): void {
    this.#cancel();
  }

  #check(): void {
    const { clock, pingMs, silentMs, ping, deaf, onSilent } = this.#o;
    const now = clock.monotonic();
    // If this process did not run, what the peer sent meanwhile has not been read yet.
    const blind = now - this.#due > pingMs || deaf();
    this.#due = now + pingMs;
    if (this.#heard || blind) this.#silentSince = now;
    if (now - this.#silentSince >= silentMs) {
      return onSilent(`nothing was heard for ${Math.round(now - this.#silentSince)} ms`);
    }
    if (!this.#heard) ping();
    this.#heard = false;
    this.#cancel = clock.after(pingMs, () => this.#check());
  }
}
