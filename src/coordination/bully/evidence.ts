/**
 * What proves that one life of a node has ended, as this node has found out by itself.
 *
 *   another life answers   the same name answers a call of ours with another incarnation: the one before is over for good
 *   nobody listens         its address refuses connections: over, unless that life is heard again
 *
 * Silence proves nothing. Only answers to our own calls count as the word of a new life: a request may have been on its way for
 * so long that it is itself the word of the old one.
 */

import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";

export class Evidence {
  /** The life that answered last. */
  readonly #answered = new Map<NodeName, string>();
  readonly #refusing = new Map<NodeName, string>();
  readonly #onGone: () => void;

  constructor(onGone: () => void) {
    this.#onGone = onGone;
  }

  gone({ name, incarnation }: NodeIdentity): boolean {
    if (this.#refusing.get(name) === incarnation) return true;
    const answered = this.#answered.get(name);
    return answered !== undefined && answered !== incarnation;
  }

  /** An answer to a call of ours. */
  answered({ name, incarnation }: NodeIdentity): void {
    const before = this.#answered.get(name);
    this.#answered.set(name, incarnation);
    this.#refusing.delete(name);
    if (before !== incarnation) this.#onGone();
  }

  /** Something that this life can only have sent lately. */
  heard({ name, incarnation }: NodeIdentity): void {
    if (this.#refusing.get(name) === incarnation) this.#refusing.delete(name);
  }

  refuses({ name, incarnation }: NodeIdentity): void {
    if (this.#refusing.get(name) === incarnation) return;
    this.#refusing.set(name, incarnation);
    this.#onGone();
  }

  /** Whether nobody listens at the address of that name, as seen last. */
  refusing(name: NodeName): boolean {
    return this.#refusing.has(name);
  }
}
