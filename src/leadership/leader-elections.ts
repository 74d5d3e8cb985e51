/**
 * The elections of a node, one for each leader role. Each role has its own lock, epochs and duties:
 *
 *   scheduler            fires schedules, recovers jobs of dead nodes, expired leases and overdue runs
 *   metrics_aggregator   samples the whole cluster every few seconds; removes old samples
 *   log_compactor        removes finished jobs with their logs, and old occurrences, after their retention
 *
 * A node with the role `scheduler` is a candidate for all of them; other nodes only observe the leaders. The duties are
 * not part of this file: they follow `changes()`.
 */

import type { Coordination, Leadership, LeaseLock, Membership } from "./coordination.ts";
import { Elector } from "./elector.ts";
import type { ElectorSettings } from "./elector-settings.ts";
import { LeaderObserver } from "./leader-observer.ts";
import type { NodeIdentity } from "../core/node.ts";
import { LEADER_ROLES, type LeaderRole, type TermChange } from "../core/leadership/term.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import { Lifecycle, type Service } from "../platform/service.ts";
import { GatedLeadership, type LeaderGate } from "./gated-leadership.ts";

export interface LeaderElectionsOptions {
  readonly coordination: Coordination;
  readonly identity: NodeIdentity;
  /** Whether this node may lead in that role. */
  readonly stands: (role: LeaderRole) => boolean;
  /** What has to happen before a term of the scheduler begins. */
  readonly gate?: LeaderGate;
  /** Each term of ours as it begins and ends. */
  readonly onChange?: (change: TermChange) => void;
  readonly settings: ElectorSettings;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

export class LeaderElections extends Lifecycle {
  readonly scheduler: Leadership;
  /** Its terms are numbered by the store that it compacts. */
  readonly compactor: Leadership;
  readonly #all: Readonly<Record<LeaderRole, Leadership>>;
  readonly #electors: readonly Service[];
  /** Looks who leads while we do not stand. */
  readonly #observer: LeaderObserver;

  constructor(options: LeaderElectionsOptions) {
    super();
    const { coordination, identity, stands, gate, settings, clock, random, log, onChange } = options;
    const electors = LEADER_ROLES.map((role) => {
      const lock = coordination.lock(role);
      if (!stands(role))
        return new LeaderObserver({ lock, node: identity.name, role, clock, intervalMs: settings.retryMs });
      const own = whileListed(lock, coordination.membership);
      const elector = new Elector({ lock: own, identity, role, clock, random, settings, log, onChange });
      return gate && role === "scheduler" ? new GatedLeadership({ elector, identity, gate, log }) : elector;
    });
    this.#electors = electors;
    const scheduler = electors[LEADER_ROLES.indexOf("scheduler")]!;
    this.compactor = electors[LEADER_ROLES.indexOf("log_compactor")]!;
    const lock = coordination.lock("scheduler");
    this.#observer = new LeaderObserver({
      lock,
      node: identity.name,
      role: "scheduler",
      clock,
      intervalMs: settings.retryMs,
    });
    this.scheduler = {
      current: () => (this.#observer.running ? this.#observer : scheduler).current(),
      held: () => scheduler.held(),
      require: () => scheduler.require(),
      silence: () => (this.#observer.running ? this.#observer : scheduler).silence(),
      changes: (signal) => scheduler.changes(signal),
    };
    const byRole = LEADER_ROLES.map((role, at) => [role, electors[at]!]);
    this.#all = {
      ...(Object.fromEntries(byRole) as Record<LeaderRole, Leadership>),
      scheduler: this.scheduler,
    };
  }

  of(role: LeaderRole): Leadership {
    return this.#all[role];
  }

  protected async onStart(): Promise<void> {
    await Promise.all(this.#electors.map((elector) => elector.start()));
  }

  /** For a drained node, which does not stand but is still asked. */
  async observe(looks: boolean): Promise<void> {
    await (looks ? this.#observer.start() : this.#observer.stop());
  }

  protected async onStop(): Promise<void> {
    await Promise.all(this.#electors.map((elector) => elector.stop()));
  }
}

/** The lock, for as long as this node is who the others take it for. */
function whileListed(lock: LeaseLock, membership: Pick<Membership, "displaced">): LeaseLock {
  const displaced = (): boolean => membership.displaced() !== null;
  return {
    acquire: async (candidate, ttlMs) => (displaced() ? null : lock.acquire(candidate, ttlMs)),
    renew: async (term, ttlMs) => {
      if (!displaced()) return lock.renew(term, ttlMs);
      await lock.release(term);
      return false;
    },
    release: (term) => lock.release(term),
    read: () => lock.read(),
    tenure: () => lock.tenure(),
    released: (signal) => lock.released(signal),
  };
}
