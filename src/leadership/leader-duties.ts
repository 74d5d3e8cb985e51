/**
 * Runs the duties of a leader during its terms.
 *
 *     changes():   term 7 ------------ null ---- term 8 -----
 *     duties:      start all ... abort, wait     start all ...
 *
 * A duty gets only its term and a signal and reads the rest from the store, so no state leaks from term to term. One
 * that returns is finished for the term; one that throws is started again, with growing delays.
 *
 * Not guaranteed: that a duty has stopped when the next term begins. It is waited for, within limits; its later writes
 * carry the old epoch and are refused by the store.
 */

import type { Leadership } from "./coordination.ts";
import type { Duty, Term } from "../core/leadership/term.ts";
import { Backoff, within } from "../platform/loop.ts";
import type { Platform } from "../platform/platform.ts";
import { Lifecycle } from "../platform/service.ts";

interface LeaderDutiesOptions extends Pick<Platform, "clock"> {
  readonly leadership: Pick<Leadership, "changes">;
  readonly duties: Readonly<Record<string, Duty>>;
  readonly log?: Pick<Platform["log"], "error">;
  /** How long the end of a term waits for its duties. Shorter, and two terms' duties overlap more often. */
  readonly graceMs?: number;
}

const FIRST_RESTART_MS = 100;
const RESTART_MS_MAX = 10_000;
/** No term of ours follows a stop, and a duty that waits for a silent store must not hold it up. */
const STOP_GRACE_MS = 1_000;
/** A duty that ran this long before it threw starts again with the first delay. */
const STEADY_MS = 60_000;

interface Tenure {
  readonly term: Term;
  readonly ending: AbortController;
  readonly busy: Set<string>;
  readonly done: Promise<unknown>;
}

export class LeaderDuties extends Lifecycle {
  readonly #o: LeaderDutiesOptions;
  readonly #graceMs: number;
  #stopping = new AbortController();
  #following: Promise<void> = Promise.resolve();
  #tenure: Tenure | null = null;

  constructor(options: LeaderDutiesOptions) {
    super();
    this.#o = options;
    this.#graceMs = options.graceMs ?? 5_000;
  }

  get current(): { readonly term: Term; readonly busy: readonly string[] } | null {
    return this.#tenure && { term: this.#tenure.term, busy: [...this.#tenure.busy] };
  }

  protected override onStart(): void {
    this.#stopping = new AbortController();
    this.#following = this.#follow(this.#stopping.signal);
  }

  protected override async onStop(): Promise<void> {
    this.#stopping.abort();
    this.#tenure?.ending.abort();
    await this.#following;
  }

  async #follow(stopping: AbortSignal): Promise<void> {
    const backoff = new Backoff(FIRST_RESTART_MS, RESTART_MS_MAX);
    while (!stopping.aborted) {
      try {
        for await (const term of this.#o.leadership.changes(stopping)) {
          await this.#end();
          if (term && !stopping.aborted) this.#begin(term);
          backoff.reset();
        }
      } catch (error) {
        this.#o.log?.error({ err: error }, "leadership cannot be followed; duties stop until it can");
      }
      // Without news of the term no duty may go on.
      await this.#end();
      if (!stopping.aborted) await this.#o.clock.sleep(backoff.next(), stopping);
    }
  }

  #begin(term: Term): void {
    const ending = new AbortController();
    const busy = new Set(Object.keys(this.#o.duties));
    const runs = Object.entries(this.#o.duties).map(async ([name, duty]) => {
      await this.#keepRunning(name, duty, term, ending.signal);
      busy.delete(name);
    });
    this.#tenure = { term, ending, busy, done: Promise.all(runs) };
  }

  async #keepRunning(name: string, duty: Duty, term: Term, ending: AbortSignal): Promise<void> {
    const backoff = new Backoff(FIRST_RESTART_MS, RESTART_MS_MAX);
    while (!ending.aborted) {
      const startedAt = this.#o.clock.monotonic();
      try {
        await duty(term, ending);
        return;
      } catch (error) {
        if (ending.aborted) return;
        if (this.#o.clock.monotonic() - startedAt >= STEADY_MS) backoff.reset();
        const delayMs = backoff.next();
        this.#o.log?.error(
          { duty: name, epoch: term.epoch, err: error, delayMs },
          "a leader's duty failed; it starts again",
        );
        await this.#o.clock.sleep(delayMs, ending);
      }
    }
  }

  async #end(): Promise<void> {
    const tenure = this.#tenure;
    if (!tenure) return;
    tenure.ending.abort();
    const { signal: stopping } = this.#stopping;
    await within(this.#o.clock, this.#graceMs, tenure.done, stopping);
    if (stopping.aborted) await within(this.#o.clock, Math.min(this.#graceMs, STOP_GRACE_MS), tenure.done);
    if (tenure.busy.size > 0) {
      this.#o.log?.error(
        { duties: [...tenure.busy], epoch: tenure.term.epoch },
        "duties did not stop with their term; the store refuses what they still write",
      );
    }
    this.#tenure = null;
  }
}
