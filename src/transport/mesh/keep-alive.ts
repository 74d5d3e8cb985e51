/** Pings a silent peer, and reports when no answer arrives. */

import type { Clock } from "../../platform/clock.ts";

export interface KeepAliveOptions {
  readonly clock: Clock;
  /** After so long without a frame the peer is asked for one, */
  readonly pingMs: number;
  /** and after so long it is given up. Below a few pings a busy machine looks dead. */
  readonly silentMs: number;
  readonly ask: () => void;
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
    this.#cancel = clock.after(pingMs, () => this.#look());
  }

  heard(): void {
    this.#heard = true;
  }

  stop(): void {
    this.#cancel();
  }

  #look(): void {
    const { clock, pingMs, silentMs, ask, onSilent } = this.#o;
    const now = clock.monotonic();
    // We did not run ourselves, so what the peer sent meanwhile has not been read yet.
    const blind = now - this.#due > pingMs;
    this.#due = now + pingMs;
    if (this.#heard || blind) this.#silentSince = now;
    if (now - this.#silentSince >= silentMs) {
      return onSilent(`nothing was heard for ${Math.round(now - this.#silentSince)} ms`);
    }
    if (!this.#heard) ask();
    this.#heard = false;
    this.#cancel = clock.after(pingMs, () => this.#look());
  }
}
