/**
 * Leadership as seen by a node that is never a candidate for a role. It polls the lock to learn who leads, and never
 * leads itself.
 */

import { BatonError } from "../core/errors.ts";
import type { NodeName } from "../core/ids.ts";
import type { LeaderRole, Term } from "../core/leadership/term.ts";
import type { Clock } from "../platform/clock.ts";
import { Lifecycle } from "../platform/service.ts";
import type { Leadership, LeaseLock, LockSilence } from "./coordination.ts";
import { LockCalls } from "./lock-calls.ts";

export interface LeaderObserverOptions {
  readonly lock: LeaseLock;
  readonly node: NodeName;
  readonly role: LeaderRole;
  readonly clock: Clock;
  readonly intervalMs: number;
}

export class LeaderObserver extends Lifecycle implements Leadership {
  readonly #o: LeaderObserverOptions;
  readonly #calls: LockCalls;
  #seen: Term | null = null;
  #stopping = new AbortController();
  #looking: Promise<void> = Promise.resolve();

  constructor(options: LeaderObserverOptions) {
    super();
    this.#o = options;
    this.#calls = new LockCalls(options.clock, 2 * options.intervalMs);
  }

  current(): Term | null {
    return this.#seen;
  }

  held(): null {
    return null;
  }

  require(): never {
    const { node, role } = this.#o;
    const leader = this.#seen;
    throw new BatonError(
      "NOT_LEADER",
      `${node} never leads (${role}); ${leader ? `${leader.leader} does, as last seen` : "no leader is known"}`,
      { role, leader: leader?.leader ?? null, epoch: leader?.epoch ?? null },
    );
  }

  silence(): LockSilence | null {
    return this.#calls.silence();
  }

  /** Silent until the signal: this node has no terms. */
  async *changes(signal: AbortSignal): AsyncGenerator<Term | null> {
    if (signal.aborted) return;
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    yield* [];
  }

  protected onStart(): void {
    this.#stopping = new AbortController();
    this.#looking = this.#look(this.#stopping.signal);
  }

  protected async onStop(): Promise<void> {
    this.#stopping.abort();
    await this.#looking;
  }

  async #look(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      const answer = await this.#calls.ask(() => this.#o.lock.read(), { stopping });
      // While the backend is away nobody is known to lead.
      this.#seen = answer.given ? answer.value : null;
      await this.#o.clock.sleep(this.#o.intervalMs, stopping);
    }
  }
}
