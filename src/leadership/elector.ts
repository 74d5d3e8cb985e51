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
 * Trust is limited by core/leadership/trust-window.ts and computed in every call of `held()`, so it ends in time even while
 * this loop is blocked. Every call to the lock has a deadline, and a late answer changes nothing: a late renewal does
 * not revive a term, a late grant is released.
 *
 * A wall clock that leaps ahead of monotonic time means that the machine slept, or that the clock was set. `held()` is
 * null until one renewal sent after the leap is acknowledged; then the term continues, otherwise it ends at once. The
 * alternative, ending the term without asking, was rejected: every correction of a wall clock would cost an election.
 */

import { BatonError } from "../core/errors.ts";
import type { NodeIdentity } from "../core/node.ts";
import type { LeaderRole, Term, TermChange, TermEnd } from "../core/leadership/term.ts";
import { sameTerm, TERM_ENDS, termFields } from "../core/leadership/term.ts";
import { slept, trustedUntil } from "../core/leadership/trust-window.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import { Lifecycle } from "../platform/service.ts";
import type { LeaseLock, Leadership, LockSilence } from "./coordination.ts";
import { checkElectorSettings } from "./elector-settings.ts";
import type { ElectorSettings } from "./elector-settings.ts";
import { Feed } from "../platform/feed.ts";
import { LockCalls } from "./lock-calls.ts";

export interface ElectorOptions {
  readonly lock: LeaseLock;
  readonly identity: NodeIdentity;
  readonly role: LeaderRole;
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: ElectorSettings;
  readonly log?: Pick<Log, "info" | "warn">;
  readonly onChange?: (change: TermChange) => void;
}

/** Both clocks at one instant. */
interface Stamp {
  readonly mono: number;
  readonly wall: number;
}

export class Elector extends Lifecycle implements Leadership {
  readonly #lock: LeaseLock;
  readonly #identity: NodeIdentity;
  readonly #role: LeaderRole;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #settings: ElectorSettings;
  readonly #log: ElectorOptions["log"];
  readonly #onChange: ElectorOptions["onChange"];
  /** Two calls fit between the time a renewal is due and the end of trust: one that hangs does not cost the term. */
  readonly #callMs: number;
  readonly #calls: LockCalls;

  readonly #changes = new Feed<Term | null>();
  /** Ours, from its grant until it is ended; whether it may be acted on is `held()`. */
  #term: Term | null = null;
  /** When the last renewal that was acknowledged had been sent. */
  #confirmed: Stamp = { mono: 0, wall: 0 };
  #seen: Term | null = null;
  #standsFrom = -Infinity;
  /** The lock did not answer when it was asked last; that is told once. */
  #unanswered = false;
  #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #nap = new AbortController();
  #nudged = false;

  constructor(options: ElectorOptions) {
    super();
    checkElectorSettings(options.settings);
    this.#lock = options.lock;
    this.#identity = options.identity;
    this.#role = options.role;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#settings = options.settings;
    this.#log = options.log;
    this.#onChange = options.onChange;
    const { leaseMs, marginMs, renewMs } = options.settings;
    this.#callMs = (leaseMs - marginMs - renewMs) / 2;
    this.#calls = new LockCalls(this.#clock, this.#callMs);
  }

  current(): Term | null {
    return this.#seen;
  }

  held(): Term | null {
    if (!this.#term || this.#clock.monotonic() >= this.#lapsesAt()) return null;
    if (!this.#doubtful()) return this.#term;
    this.#nudge();
    return null;
  }

  require(): Term {
    const term = this.held();
    if (term) return term;
    const leader = this.#seen && this.#seen.leader !== this.#identity.name ? this.#seen : null;
    throw new BatonError(
      "NOT_LEADER",
      leader
        ? `${this.#identity.name} does not lead (${this.#role}); ${leader.leader} does, as last seen`
        : `${this.#identity.name} does not lead (${this.#role}), and no other leader is known`,
      { role: this.#role, leader: leader?.leader ?? null, epoch: leader?.epoch ?? null },
    );
  }

  silence(): LockSilence | null {
    return this.#calls.silence();
  }

  /** A follower that comes in the middle of a term gets that term first. It goes on across a stop and a new start. */
  changes(signal: AbortSignal): AsyncIterable<Term | null> {
    return this.#changes.follow(signal, this.#term ? [this.#term] : []);
  }

  /** Gives the term up and lets the others try first. Does nothing for a standby. */
  async resign(): Promise<void> {
    const term = this.#end("resigned");
    if (!term) return;
    // Whoever stands by tries within 1.25 x retryMs, hint or not.
    this.#standsFrom = this.#clock.monotonic() + 2 * this.#settings.retryMs;
    this.#nudge();
    await this.#release(term);
  }

  protected override onStart(): void {
    this.#stopping = new AbortController();
    this.#standsFrom = -Infinity;
    this.#loop = this.#run(this.#stopping.signal);
    void this.#heedHints(this.#stopping.signal);
  }

  protected override async onStop(): Promise<void> {
    const term = this.#end("stopped");
    this.#stopping.abort();
    this.#nudge();
    await this.#loop;
    if (term) await this.#release(term);
    // A grant may still be on its way to us: wait for it, within limits, so that it does not block the others.
    await this.#calls.settle();
  }

  async #run(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      const waitMs = this.#standsFrom - this.#clock.monotonic();
      if (waitMs > 0) await this.#clock.sleep(waitMs, stopping);
      else if (await this.#stand(stopping)) await this.#lead(stopping);
    }
  }

  /** One attempt; true with the term begun, else after the pause that belongs behind it. */
  async #stand(stopping: AbortSignal): Promise<boolean> {
    this.#nudged = false;
    const sent = this.#stamp();
    const answer = await this.#calls.ask(() => this.#lock.acquire(this.#identity, this.#settings.leaseMs), {
      stopping,
      late: (term) => term && this.#release(term),
    });
    if (answer.given && answer.value) {
      // The answer may have lain there while this thread was held up, or while we were told to stop.
      const usable = !stopping.aborted && this.#clock.monotonic() < trustedUntil(sent.mono, this.#settings);
      if (usable) this.#begin(answer.value, sent);
      else await this.#release(answer.value);
      return usable;
    }
    if (stopping.aborted) return false;
    if (answer.given) await this.#look(stopping);
    else if (!this.#unanswered)
      this.#log?.warn(
        { leaderRole: this.#role, err: answer.error },
        "could not ask for the leader lock; trying on",
      );
    this.#unanswered = !answer.given;
    const { retryMs } = this.#settings;
    // Spread by a quarter to both sides: standbys that start together do not ask together for ever.
    await this.#pause(retryMs * (0.75 + 0.5 * this.#random.chance()), stopping);
    return false;
  }

  async #look(stopping: AbortSignal): Promise<void> {
    const answer = await this.#calls.ask(() => this.#lock.read(), { stopping });
    if (answer.given) this.#seen = answer.value;
  }

  /** Renews until the term is over. */
  async #lead(stopping: AbortSignal): Promise<void> {
    const term = this.#term;
    let retryAt = -Infinity;
    let hinted = false;
    for (;;) {
      if (!term || this.#term !== term) return;
      const now = this.#clock.monotonic();
      const lapsesAt = this.#lapsesAt();
      if (now >= lapsesAt) return this.#giveUp("lapsed");
      const doubtful = this.#doubtful();
      const due = doubtful || hinted ? now : Math.max(this.#confirmed.mono + this.#settings.renewMs, retryAt);
      if (due > now) {
        hinted = await this.#pause(Math.min(due, lapsesAt) - now, stopping);
        continue;
      }
      hinted = false;
      const sent = this.#stamp();
      const answer = await this.#calls.ask(() => this.#lock.renew(term, this.#settings.leaseMs), {
        deadlineMs: Math.min(this.#callMs, lapsesAt - now),
        stopping,
      });
      if (this.#term !== term) return;
      if (this.#clock.monotonic() >= lapsesAt) return this.#giveUp("lapsed");
      if (answer.given && answer.value) {
        this.#confirmed = sent;
        retryAt = -Infinity;
      } else if (answer.given) {
        this.#end("superseded");
      } else if (doubtful) {
        return this.#giveUp("slept");
      } else {
        this.#log?.warn({ ...termFields(term), err: answer.error }, "could not renew the term; trying again");
        retryAt = this.#clock.monotonic() + Math.min(this.#settings.retryMs, this.#callMs / 2);
      }
    }
  }

  #begin(term: Term, sent: Stamp): void {
    const before = this.#seen;
    this.#confirmed = sent;
    this.#term = term;
    this.#seen = term;
    this.#log?.info(termFields(term), "leading");
    this.#onChange?.({ is: "started", term, before });
    this.#changes.push(term);
  }

  /** Followers hear of the end before the lock does, so that duties are called off before a successor is granted. */
  #end(reason: TermEnd): Term | null {
    const term = this.#term;
    if (!term) return null;
    this.#term = null;
    if (this.#seen && sameTerm(this.#seen, term)) this.#seen = null;
    this.#log?.info({ ...termFields(term), reason: TERM_ENDS[reason] }, "no longer leading");
    this.#onChange?.({ is: "ended", term, reason });
    this.#changes.push(null);
    return term;
  }

  /** The lock may still count the term as ours. */
  #giveUp(reason: TermEnd): void {
    const term = this.#end(reason);
    if (term) this.#calls.track(this.#release(term));
  }

  async #release(term: Term): Promise<void> {
    const answer = await this.#calls.ask(() => this.#lock.release(term));
    if (!answer.given) {
      this.#log?.warn(
        { ...termFields(term), err: answer.error },
        "could not release the term; it runs out by itself",
      );
    }
  }

  #lapsesAt(): number {
    return trustedUntil(this.#confirmed.mono, this.#settings);
  }

  #doubtful(): boolean {
    const now = this.#stamp();
    const since = this.#confirmed;
    return slept(now.wall - since.wall, now.mono - since.mono, this.#settings.leaseMs);
  }

  #stamp(): Stamp {
    return { mono: this.#clock.monotonic(), wall: this.#clock.now() };
  }

  async #heedHints(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      try {
        for await (const _ of this.#lock.released(stopping)) {
          if (stopping.aborted) return;
          this.#nudge();
        }
      } catch (error) {
        this.#log?.warn(
          { leaderRole: this.#role, err: error },
          "no hints from the leader lock; polling goes on",
        );
      }
      await this.#clock.sleep(this.#settings.retryMs, stopping);
    }
  }

  /** True when a hint ended it, or came before it. */
  async #pause(ms: number, stopping: AbortSignal): Promise<boolean> {
    if (!this.#nudged && !stopping.aborted) {
      this.#nap = new AbortController();
      await this.#clock.sleep(ms, this.#nap.signal);
    }
    const nudged = this.#nudged;
    this.#nudged = false;
    return nudged;
  }

  /** Ends the current pause, or skips the next one. */
  #nudge(): void {
    this.#nudged = true;
    this.#nap.abort();
  }
}
