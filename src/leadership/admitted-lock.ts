/**
 * The leader lock of one role, where a backend other than the store elects leaders. A grant of the backend counts only
 * after the store has admitted its epoch: it refuses one that is lower than what it knows, or equal to that of another
 * leader. So epochs never decrease, even if the backend loses its data.
 */

import { BatonError } from "../core/errors.ts";
import type { NodeIdentity } from "../core/node.ts";
import { sameTerm, type LeaderRole, type Term, termFields } from "../core/leadership/term.ts";
import type { Platform } from "../platform/platform.ts";
import type { TermStore } from "../store/store.ts";
import { BaseLock } from "./base-lock.ts";
import type { Tenure } from "./coordination.ts";

export interface AdmittedLockOptions extends Pick<Platform, "clock" | "log"> {
  readonly role: LeaderRole;
  readonly terms: TermStore;
  readonly owner: { readonly running: boolean };
}

export interface GrantRequest {
  readonly candidate: NodeIdentity;
  readonly ttlMs: number;
  /** The highest epoch that was seen: the new one is to be above it. */
  readonly floor: number;
}

/** A grant below what the store knows is followed by one above it; more tries mean that others are granted terms meanwhile. */
const ADMIT_TRIES = 3;
/** Timers may fire a little early. */
const TIMER_SLACK_MS = 5;

export abstract class AdmittedLock<Grant extends { readonly term: Term }> extends BaseLock {
  readonly #o: AdmittedLockOptions;
  /** The highest epoch that was seen here; what the store remembers is asked for once. */
  #floor: number | null = null;
  #superseded: Term | null = null;
  #callOffLapse = (): void => {};

  constructor(options: AdmittedLockOptions) {
    super(options.owner);
    this.#o = options;
  }

  /** For the log, when the store knows a higher epoch than the backend. */
  protected abstract readonly outdated: string;
  /** `held`: another's lease is valid, and `wait` was called for it. `again`: another candidate was faster. */
  protected abstract tryGrant(request: GrantRequest): Promise<Grant | "held" | "again">;
  protected abstract onAdmitted(grant: Grant): void;
  protected abstract giveBack(grant: Grant): Promise<void>;
  protected abstract tryRenew(term: Term, ttlMs: number): Promise<boolean>;
  protected abstract onStop(): void;

  protected async extend(term: Term, ttlMs: number): Promise<boolean> {
    if (sameTerm(this.#superseded, term)) return false;
    const asked = this.tryRenew(term, ttlMs);
    void this.#compare(term);
    return (await asked) && !sameTerm(this.#superseded, term);
  }

  override async tenure(): Promise<Tenure | null> {
    const tenure = await super.tenure();
    if (tenure) this.note(tenure.epoch);
    return tenure;
  }

  async stop(): Promise<void> {
    await this.turn.idle();
    this.#callOffLapse();
    this.#superseded = null;
    this.onStop();
  }

  protected wait(epoch: number, leftMs: number, onLapse = (): void => {}): void {
    this.note(epoch);
    this.#callOffLapse = this.#o.clock.after(leftMs + TIMER_SLACK_MS, () => {
      onLapse();
      this.hint();
    });
  }

  protected note(epoch: number): void {
    if (this.#floor !== null) this.#floor = Math.max(this.#floor, epoch);
  }

  /** Of two terms of one candidate at the same time, the store would admit the later one first. */
  protected async attempt(candidate: NodeIdentity, ttlMs: number): Promise<Term | null> {
    this.#callOffLapse();
    const { role, terms } = this.#o;
    this.#floor ??= (await terms.read(role))?.epoch ?? 0;
    for (let tries = 0; tries < ADMIT_TRIES; tries++) {
      const grant = await this.tryGrant({ candidate, ttlMs, floor: this.#floor });
      if (grant === "held") return null;
      if (grant === "again" || !(await this.#admitted(grant))) continue;
      this.onAdmitted(grant);
      return grant.term;
    }
    throw new BatonError("STORE_UNAVAILABLE", `others were granted ${role} while the store was asked`);
  }

  /** Whether the store takes the term. If it does not answer, the backend must not keep the others out for it. */
  async #admitted(grant: Grant): Promise<boolean> {
    const { terms, log } = this.#o;
    const { term } = grant;
    this.note(term.epoch);
    try {
      if (await terms.admit(term)) return true;
      const newest = await terms.read(term.role);
      log.warn({ ...termFields(term), newest: newest?.epoch }, `${this.outdated}; asking for a higher one`);
      this.note(newest?.epoch ?? 0);
      return false;
    } catch (error) {
      await this.giveBack(grant).catch(() => {}); // it runs out by itself
      throw error;
    }
  }

  /**
   * After a failover, or where nodes were given different servers, two may lead and renew. The one that may not write
   * learns it here from the store. Not waited for: a store that is away says nothing about who leads.
   */
  async #compare(term: Term): Promise<void> {
    try {
      const newest = await this.#o.terms.read(term.role);
      if (!newest || newest.epoch < term.epoch || sameTerm(newest, term)) return;
      this.note(newest.epoch);
      this.#superseded = term;
      this.hint();
    } catch {
      // It is asked again with the next renewal.
    }
  }
}
