/** Flow control for one body: the reader grants credit as it reads, so that a slow reader delays only itself. */

import { MeshFault } from "./frame.ts";

/** In flight at most. Smaller, and a long way makes streams slow; larger, and slow readers cost memory. */
export const WINDOW_BYTES = 256 * 1024;

export class Flow {
  #credit = WINDOW_BYTES;
  #closed = false;
  #waiting: (() => void) | null = null;

  get closed(): boolean {
    return this.#closed;
  }

  /** Waits until something may be sent; 0 when nobody wants it any more. */
  async allow(bytes: number): Promise<number> {
    while (this.#credit === 0 && !this.#closed) {
      await new Promise<void>((resolve) => (this.#waiting = resolve));
    }
    if (this.#closed) return 0;
    const allowed = Math.min(bytes, this.#credit);
    this.#credit -= allowed;
    return allowed;
  }

  grant(bytes: number): void {
    this.#credit += bytes;
    this.#wake();
  }

  close(): void {
    this.#closed = true;
    this.#wake();
  }

  #wake(): void {
    this.#waiting?.();
    this.#waiting = null;
  }
}

/** The reader's side: gives back what was read, in a few large pieces, and notices a peer that sends more than it may. */
export class Credit {
  readonly #grant: (bytes: number) => void;
  #left = WINDOW_BYTES;
  #owed = 0;
  #held = false;

  constructor(grant: (bytes: number) => void) {
    this.#grant = grant;
  }

  read(bytes: number): void {
    this.#left -= bytes;
    if (this.#left < 0) throw new MeshFault("more of a body came than was asked for");
    this.#owed += bytes;
    this.#settle();
  }

  hold(): void {
    this.#held = true;
  }

  release(): void {
    this.#held = false;
    this.#settle();
  }

  #settle(): void {
    if (this.#held || this.#owed < WINDOW_BYTES / 4) return;
    this.#left += this.#owed;
    this.#grant(this.#owed);
    this.#owed = 0;
  }
}
