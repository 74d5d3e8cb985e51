/**
 * A leadership that begins only when a gate permits it.
 *
 *   elector:   term 7 ------------------------------- null
 *   gate:      asked ......... open
 *   seen:      (standby)       term 7 --------------- null
 *
 * The term is renewed while the gate is closed, so no other node begins in the meantime, but `held()` is null and
 * duties are not informed: no write can be made under the term. If the gate refuses, the term ends and other nodes may
 * lead.
 */

import type { Leadership, LockSilence } from "./coordination.ts";
import { Feed } from "../platform/feed.ts";
import { BatonError } from "../core/errors.ts";
import type { NodeIdentity } from "../core/node.ts";
import { heldBy, sameTerm, type Term, termFields } from "../core/leadership/term.ts";
import type { Log } from "../platform/log.ts";
import { Lifecycle, type Service } from "../platform/service.ts";

/** Resolves when the term may be acted on; rejects when it must be given up. The signal says that it is over anyway. */
export type LeaderGate = (term: Term, signal: AbortSignal) => Promise<void>;

/** The same, of whoever switches agents off for it and answers which. */
export type BeforeLeading = (...asked: Parameters<LeaderGate>) => Promise<readonly string[]>;

export interface GatedLeadershipOptions {
  readonly elector: Leadership & Service & { resign(): Promise<void> };
  readonly identity: NodeIdentity;
  readonly gate: LeaderGate;
  readonly log?: Pick<Log, "info" | "error">;
}

export class GatedLeadership extends Lifecycle implements Leadership {
  readonly #o: GatedLeadershipOptions;
  readonly #changes = new Feed<Term | null>();
  /** The term that the gate was opened for. */
  #open: Term | null = null;
  #asking = new AbortController();
  #stopping = new AbortController();
  #following: Promise<void> = Promise.resolve();

  constructor(options: GatedLeadershipOptions) {
    super();
    this.#o = options;
  }

  /** Nobody, while our own term has not begun: whoever was sent here would be refused. */
  current(): Term | null {
    const seen = this.#o.elector.current();
    return seen && heldBy(seen, this.#o.identity) && !this.#isOpenFor(seen) ? null : seen;
  }

  held(): Term | null {
    const term = this.#o.elector.held();
    return term && this.#isOpenFor(term) ? term : null;
  }

  require(): Term {
    const term = this.#o.elector.require();
    if (this.#isOpenFor(term)) return term;
    const { name } = this.#o.identity;
    throw new BatonError("NOT_LEADER", `${name} is about to lead and does not yet; try again in a moment`, {
      role: term.role,
      leader: null,
      epoch: null,
    });
  }

  silence(): LockSilence | null {
    return this.#o.elector.silence();
  }

  changes(signal: AbortSignal): AsyncIterable<Term | null> {
    return this.#changes.follow(signal, this.#open ? [this.#open] : []);
  }

  protected override async onStart(): Promise<void> {
    this.#stopping = new AbortController();
    this.#following = this.#follow(this.#stopping.signal);
    await this.#o.elector.start();
  }

  protected override async onStop(): Promise<void> {
    const stopped = this.#o.elector.stop();
    this.#close();
    await stopped;
    this.#stopping.abort();
    await this.#following;
  }

  async #follow(stopping: AbortSignal): Promise<void> {
    for await (const term of this.#o.elector.changes(stopping)) {
      this.#close();
      // Not waited for: the end of a term must be heard also while the gate is still being asked.
      if (term && !stopping.aborted) void this.#ask(term);
    }
  }

  async #ask(term: Term): Promise<void> {
    const asking = new AbortController();
    this.#asking = asking;
    try {
      await this.#o.gate(term, asking.signal);
      if (asking.signal.aborted) return;
      this.#open = term;
      this.#o.log?.info(termFields(term), "the way is free; duties begin");
      this.#changes.push(term);
    } catch (error) {
      if (asking.signal.aborted) return;
      this.#o.log?.error({ ...termFields(term), err: error }, "may not lead; giving the term up");
      await this.#o.elector.resign();
    }
  }

  #close(): void {
    this.#asking.abort();
    if (!this.#open) return;
    this.#open = null;
    this.#changes.push(null);
  }

  #isOpenFor(term: Term): boolean {
    return this.#open !== null && sameTerm(this.#open, term);
  }
}
