/**
 * The only election loop. A backend supplies a `LeaseLock`; this loop decides when to call it and how far to trust its
 * answers.
 *
 *               acquire: a term                      renew: true
 *     STANDBY ------------------> LEADING <------------------------.
 *        ^  \__ null: again after retryMs, or at a hint   \_________/ every renewMs, and at a hint
 *        |                           |
 *        '---------------------------' renew: false, trust window over, machine slept and not confirmed, resign, stop
 *
 * While `stands()` is false, this node is no candidate and only reads who leads. A term that a `gate` has not opened yet
 * is renewed, so no other node begins in the meantime, but nothing outside sees it: `held()` and `current()` are null,
 * and no duty starts. If the gate refuses, the term ends and other nodes may lead.
 *
 * Trust is limited by core/leadership/trust-window.ts and computed in every call of `held()`, so it ends in time even while
 * this loop is blocked. Every call to the lock has a deadline, and a late answer changes nothing: a late renewal does
 * not revive a term, a late grant is released.
 *
 * A wall clock that leaps ahead of monotonic time means that the machine slept, or that the clock was set. `held()` is
 * null until one renewal sent after the leap is acknowledged; then the term continues, otherwise it ends at once. The
 * alternative, ending the term without asking, was rejected: every correction of a wall clock would cost an election.
 */

import { BatonError } from "../core/errors.ts";
import {
  heldBy,
  sameTerm,
  TERM_ENDS,
  termFields,
  type LeaderRole,
  type Term,
  type TermChange,
  type TermEnd,
} from "../core/leadership/term.ts";
import { slept, trustedUntil } from "../core/leadership/trust-window.ts";
import type { Platform } from "../platform/platform.ts";
import { Lifecycle } from "../platform/service.ts";
import type { LeaseLock, Leadership, LockSilence } from "./coordination.ts";
import { Feed } from "../platform/feed.ts";
import { LockCalls } from "./lock-calls.ts";
import { Pause } from "../platform/loop.ts";

/** Resolves when the term may be acted on; rejects when it must be given up. The signal says that it is over anyway. */
export type LeaderGate = (term: Term, signal: AbortSignal) => Promise<void>;

/** A gate that switches agents off, and returns which. */
export type BeforeLeading = (...asked: Parameters<LeaderGate>) => Promise<readonly string[]>;

export interface ElectorSettings {
  /** How long the lock grants a term. A dead leader is replaced after this, if no hint comes first. */
  readonly leaseMs: number;
  readonly renewMs: number;
  /** The part of the lease that is not used, see core/leadership/trust-window.ts. */
  readonly marginMs: number;
  /** How often a standby tries, spread by a quarter to both sides. */
  readonly retryMs: number;
}

export interface ElectorOptions extends Pick<Platform, "identity" | "clock" | "random"> {
  readonly log?: Pick<Platform["log"], "info" | "warn" | "error">;
  readonly lock: LeaseLock;
  readonly role: LeaderRole;
  readonly settings: ElectorSettings;
  readonly stands?: () => boolean;
  readonly gate?: LeaderGate | undefined;
  readonly onChange?: ((change: TermChange) => void) | undefined;
}

interface Stamp {
  readonly mono: number;
  readonly wall: number;
}

export class Elector extends Lifecycle implements Leadership {
  readonly #o: ElectorOptions;
  /** Two calls fit between the time a renewal is due and the end of trust: one that hangs does not cost the term. */
  readonly #callMs: number;
  readonly #calls: LockCalls;
  readonly #changes = new Feed<Term | null>();
  /** Ours, from its grant until it is ended; whether it may be acted on is `held()`. */
  #term: Term | null = null;
  /** The same, from when its gate has opened. */
  #opened: Term | null = null;
  #ending = new AbortController();
  /** When the last renewal that was acknowledged had been sent. */
  #confirmed: Stamp = { mono: 0, wall: 0 };
  #seen: Term | null = null;
  #standsFrom = -Infinity;
  #unanswered = false;
  #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  readonly #pause: Pause;

  constructor(options: ElectorOptions) {
    super();
    checkElectorSettings(options.settings);
    this.#o = options;
    const { leaseMs, marginMs, renewMs } = options.settings;
    this.#callMs = (leaseMs - marginMs - renewMs) / 2;
    this.#calls = new LockCalls(options.clock, this.#callMs);
    this.#pause = new Pause(options.clock);
  }

  /** Null while our own term is gated: a caller that was sent here would be refused. */
  current(): Term | null {
    const seen = this.#seen;
    return seen && heldBy(seen, this.#o.identity) && !sameTerm(this.#opened, seen) ? null : seen;
  }

  held(): Term | null {
    if (!this.#opened || this.#o.clock.monotonic() >= this.#lapsesAt()) return null;
    if (!this.#doubtful()) return this.#opened;
    this.#pause.wake();
    return null;
  }

  require(): Term {
    const term = this.held();
    if (term) return term;
    const { role, identity } = this.#o;
    const { name } = identity;
    const gated = this.#term !== null && !this.#opened;
    const leader = !gated && this.#seen && this.#seen.leader !== name ? this.#seen : null;
    const known = leader ? `; ${leader.leader} does, as last seen` : ", and no other leader is known";
    throw new BatonError(
      "NOT_LEADER",
      gated
        ? `${name} is about to lead and does not yet; try again in a moment`
        : `${name} does not lead (${role})${known}`,
      { role, leader: leader?.leader ?? null, epoch: leader?.epoch ?? null },
    );
  }

  silence(): LockSilence | null {
    return this.#calls.silence();
  }

  /** A follower that comes in the middle of a term gets that term first. It goes on across a stop and a new start. */
  changes(signal: AbortSignal): AsyncIterable<Term | null> {
    return this.#changes.follow(signal, this.#opened ? [this.#opened] : []);
  }

  /** Gives the term up and lets the others try first. Does nothing for a standby. */
  async resign(): Promise<void> {
    const term = this.#end("resigned");
    if (!term) return;
    // A standby tries within 1.25 x retryMs, or at the hint of the release.
    this.#standsFrom = this.#o.clock.monotonic() + 2 * this.#o.settings.retryMs;
    this.#pause.wake();
    await this.#release(term);
  }

  /** `stands()` has changed: ends a term that may not go on, and waits until it is released, or tries at once. */
  async reconsider(): Promise<void> {
    this.#pause.wake();
    if (this.#stands()) return;
    const term = this.#end("stopped");
    if (term) await this.#release(term);
    await this.#calls.settle();
  }

  protected override onStart(): void {
    this.#stopping = new AbortController();
    this.#standsFrom = -Infinity;
    this.#loop = this.#run(this.#stopping.signal);
    void this.#followHints(this.#stopping.signal);
  }

  protected override async onStop(): Promise<void> {
    const term = this.#end("stopped");
    this.#stopping.abort();
    this.#pause.wake();
    await this.#loop;
    if (term) await this.#release(term);
    // A grant may still be on its way to us: wait for it, within limits, so that it does not block the others.
    await this.#calls.settle();
  }

  async #run(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      const waitMs = this.#standsFrom - this.#o.clock.monotonic();
      if (waitMs > 0) await this.#o.clock.sleep(waitMs, stopping);
      else if (!this.#stands()) await this.#observe(stopping);
      else if (await this.#stand(stopping)) await this.#lead(stopping);
    }
  }

  /** One attempt; true with the term begun, else after the pause that belongs behind it. */
  async #stand(stopping: AbortSignal): Promise<boolean> {
    this.#pause.clear();
    const sent = this.#stamp();
    const { lock, identity, settings } = this.#o;
    const answer = await this.#calls.ask(() => lock.acquire(identity, settings.leaseMs), {
      stopping,
      late: (term) => term && this.#release(term),
    });
    if (answer.given && answer.value) {
      // The answer may have lain there while this thread was held up, or while we were asked to stop.
      const wanted = !stopping.aborted && this.#stands();
      const usable = wanted && this.#o.clock.monotonic() < trustedUntil(sent.mono, settings);
      if (usable) this.#begin(answer.value, sent);
      else await this.#release(answer.value);
      return usable;
    }
    if (stopping.aborted) return false;
    if (answer.given) {
      const seen = await this.#calls.ask(() => this.#o.lock.read(), { stopping });
      if (seen.given) this.#seen = seen.value;
    } else if (!this.#unanswered)
      this.#o.log?.warn(
        { leaderRole: this.#o.role, err: answer.error },
        "could not ask for the leader lock; trying again",
      );
    this.#unanswered = !answer.given;
    await this.#pauseToRetry(stopping);
    return false;
  }

  async #observe(stopping: AbortSignal): Promise<void> {
    this.#pause.clear();
    const answer = await this.#calls.ask(() => this.#o.lock.read(), { stopping });
    this.#seen = answer.given ? answer.value : null;
    await this.#pauseToRetry(stopping);
  }

  /** Spread by a quarter to both sides: standbys that start together do not ask together for ever. */
  async #pauseToRetry(stopping: AbortSignal): Promise<void> {
    const pauseMs = Math.max(this.#o.settings.retryMs, this.#o.lock.quietMs?.() ?? 0);
    await this.#pause.sleep(pauseMs * (0.75 + 0.5 * this.#o.random.chance()), stopping);
  }

  async #lead(stopping: AbortSignal): Promise<void> {
    const term = this.#term;
    let retryAt = -Infinity;
    let hinted = false;
    for (;;) {
      if (!term || this.#term !== term) return;
      const now = this.#o.clock.monotonic();
      const lapsesAt = this.#lapsesAt();
      if (now >= lapsesAt) return this.#giveUp("lapsed");
      if (!this.#stands()) return this.#giveUp("superseded");
      const doubtful = this.#doubtful();
      const due =
        doubtful || hinted ? now : Math.max(this.#confirmed.mono + this.#o.settings.renewMs, retryAt);
      if (due > now) {
        hinted = await this.#pause.sleep(Math.min(due, lapsesAt) - now, stopping);
        continue;
      }
      hinted = false;
      const sent = this.#stamp();
      const answer = await this.#calls.ask(() => this.#o.lock.renew(term, this.#o.settings.leaseMs), {
        deadlineMs: Math.min(this.#callMs, lapsesAt - now),
        stopping,
      });
      if (this.#term !== term) return;
      if (this.#o.clock.monotonic() >= lapsesAt) return this.#giveUp("lapsed");
      if (answer.given && answer.value) {
        this.#confirmed = sent;
        retryAt = -Infinity;
      } else if (answer.given) {
        this.#end("superseded");
      } else if (doubtful) {
        return this.#giveUp("slept");
      } else {
        this.#o.log?.warn(
          { ...termFields(term), err: answer.error },
          "could not renew the term; trying again",
        );
        retryAt = this.#o.clock.monotonic() + Math.min(this.#o.settings.retryMs, this.#callMs / 2);
      }
    }
  }

  #begin(term: Term, sent: Stamp): void {
    const before = this.#seen;
    this.#confirmed = sent;
    this.#term = term;
    this.#seen = term;
    this.#o.log?.info(termFields(term), "leading");
    this.#o.onChange?.({ is: "started", term, before });
    this.#ending = new AbortController();
    if (this.#o.gate) void this.#askGate(this.#o.gate, term, this.#ending.signal);
    else this.#open(term);
  }

  async #askGate(gate: LeaderGate, term: Term, ending: AbortSignal): Promise<void> {
    try {
      await gate(term, ending);
      if (ending.aborted) return;
      this.#o.log?.info(termFields(term), "the gate is open; duties begin");
      this.#open(term);
    } catch (error) {
      if (ending.aborted) return;
      this.#o.log?.error({ ...termFields(term), err: error }, "may not lead; giving the term up");
      await this.resign();
    }
  }

  #open(term: Term): void {
    this.#opened = term;
    this.#changes.push(term);
  }

  /** Followers hear of the end before the lock does, so that duties are called off before a successor is granted. */
  #end(reason: TermEnd): Term | null {
    const term = this.#term;
    if (!term) return null;
    this.#term = null;
    if (sameTerm(this.#seen, term)) this.#seen = null;
    this.#o.log?.info({ ...termFields(term), reason: TERM_ENDS[reason] }, "no longer leading");
    this.#o.onChange?.({ is: "ended", term, reason });
    this.#ending.abort();
    if (this.#opened) this.#changes.push(null);
    this.#opened = null;
    return term;
  }

  /** The lock may still count the term as ours. */
  #giveUp(reason: TermEnd): void {
    const term = this.#end(reason);
    if (term) this.#calls.track(this.#release(term));
  }

  async #release(term: Term): Promise<void> {
    const answer = await this.#calls.ask(() => this.#o.lock.release(term));
    if (!answer.given) {
      this.#o.log?.warn(
        { ...termFields(term), err: answer.error },
        "could not release the term; it runs out by itself",
      );
    }
  }

  #stands(): boolean {
    return this.#o.stands?.() ?? true;
  }

  #lapsesAt(): number {
    return trustedUntil(this.#confirmed.mono, this.#o.settings);
  }

  #doubtful(): boolean {
    const now = this.#stamp();
    const since = this.#confirmed;
    return slept(now.wall - since.wall, now.mono - since.mono, this.#o.settings.leaseMs);
  }

  #stamp(): Stamp {
    return { mono: this.#o.clock.monotonic(), wall: this.#o.clock.now() };
  }

  async #followHints(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      try {
        for await (const _ of this.#o.lock.released(stopping)) {
          if (stopping.aborted) return;
          this.#pause.wake();
        }
      } catch (error) {
        this.#o.log?.warn(
          { leaderRole: this.#o.role, err: error },
          "no hints from the leader lock; polling goes on",
        );
      }
      await this.#o.clock.sleep(this.#o.settings.retryMs, stopping);
    }
  }
}

function checkElectorSettings(settings: ElectorSettings): void {
  for (const field of ["leaseMs", "renewMs", "marginMs", "retryMs"] as const) {
    const value = settings[field];
    if (!Number.isFinite(value) || value <= 0) {
      throw new BatonError("BAD_CONFIG", `${field} must be a number of ms above 0, not ${value}`, { field });
    }
  }
  const { leaseMs, renewMs, marginMs } = settings;
  if (leaseMs > renewMs + marginMs) return;
  throw new BatonError(
    "BAD_CONFIG",
    `leaseMs (${leaseMs}) must be above renewMs + marginMs (${renewMs} + ${marginMs}): otherwise each term runs out before its first renewal; raise leaseMs or lower renewMs`,
    { field: "leaseMs" },
  );
}
