/**
 * What the leader locks of all backends share: they work only while their coordination runs, make one attempt at a time,
 * and pass on hints. `LeaseLock` says what each step promises.
 */

import { BatonError } from "../core/errors.ts";
import type { Term } from "../core/leadership/term.ts";
import type { NodeIdentity } from "../core/node.ts";
import { Feed } from "../platform/feed.ts";
import { Mutex } from "../platform/loop.ts";
import type { LeaseLock, Tenure } from "./coordination.ts";

export abstract class BaseLock implements LeaseLock {
  readonly #owner: { readonly running: boolean };
  readonly #hints = new Feed<void>();
  /** Those who follow `released`: while there are any, this node is a candidate. */
  protected followers = 0;
  protected readonly turn = new Mutex();

  /** `owner`: the coordination that this lock belongs to. */
  constructor(owner: { readonly running: boolean }) {
    this.#owner = owner;
  }

  protected abstract attempt(candidate: NodeIdentity, ttlMs: number): Promise<Term | null>;
  protected abstract extend(term: Term, ttlMs: number): Promise<boolean>;
  protected abstract giveUp(term: Term): Promise<void>;
  protected abstract readTenure(): Promise<Tenure | null>;

  /** One attempt at a time: two of one candidate would be in each other's way. */
  acquire(candidate: NodeIdentity, ttlMs: number): Promise<Term | null> {
    return this.turn.run(async () => {
      this.requireRunning();
      return this.attempt(candidate, ttlMs);
    });
  }

  async renew(term: Term, ttlMs: number): Promise<boolean> {
    this.requireRunning();
    return this.extend(term, ttlMs);
  }

  async release(term: Term): Promise<void> {
    this.requireRunning();
    await this.giveUp(term);
    this.hint();
  }

  async read(): Promise<Term | null> {
    const tenure = await this.tenure();
    if (!tenure) return null;
    const { role, leader, incarnation, epoch } = tenure;
    return { role, leader, incarnation, epoch };
  }

  async tenure(): Promise<Tenure | null> {
    this.requireRunning();
    return this.readTenure();
  }

  released(signal: AbortSignal): AsyncIterable<void> {
    if (!signal.aborted) {
      this.followers += 1;
      signal.addEventListener("abort", () => this.#unfollowed(), { once: true });
    }
    return this.#hints.follow(signal);
  }

  protected stepBack(): void {}

  #unfollowed(): void {
    this.followers -= 1;
    if (this.followers === 0) this.stepBack();
  }

  hint(): void {
    this.#hints.push();
  }

  protected requireRunning(): void {
    if (!this.#owner.running) throw new BatonError("STOPPED", "the coordination is not running");
  }
}
