/**
 * Coordination through Redis, beside a store that all nodes share: a key with a lease for each leader role, and an entry for each
 * node. Redis makes it quick; what it forgets costs an election and no more, because the store admits every epoch before it
 * counts.
 */

import { BatonError, hasCode } from "../../core/errors.ts";
import type { NodeIdentity, OwnInfo } from "../../core/node.ts";
import { LEADER_ROLES, type LeaderRole } from "../../core/term.ts";
import type { Clock } from "../../platform/clock.ts";
import { silentLog, type Log } from "../../platform/log.ts";
import type { Random } from "../../platform/random.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { TermStore } from "../../store/store.ts";
import type { Coordination, LeaseLock } from "../coordination.ts";
import { ControlSession } from "./control-session.ts";
import { subjectOf } from "./leader-scripts.ts";
import { LifeWatch } from "./life-watch.ts";
import { RedisLock } from "./lock.ts";
import { RegisteredMembership, type MembershipSettings } from "../registered-membership.ts";
import { NodeRegistry, wishSubject } from "./registry.ts";

export interface RedisCoordinationOptions {
  /** `redis://user:password@host:6379/0`, or `rediss://` for TLS. */
  readonly url: string;
  /** Of all keys, in braces; clusters that share a Redis differ in it. `baton` unless told otherwise. */
  readonly prefix?: string;
  /** Of the store that all nodes share. */
  readonly terms: TermStore;
  readonly identity: NodeIdentity;
  /** Read with every heartbeat and whenever the node is shown. */
  readonly info: () => OwnInfo;
  readonly clock: Clock;
  readonly random: Random;
  readonly log?: Log;
  readonly settings?: Partial<MembershipSettings>;
  /** How often a standby looks whether the leader is still connected: 50 ms unless told otherwise. */
  readonly lookMs?: number;
  /** Takes the place of the clock of Redis: for tests, which move it by hand. */
  readonly time?: Clock;
}

const DEFAULTS: MembershipSettings = { heartbeatMs: 1_000, deadAfterMs: 5_000, forgetAfterMs: 3_600_000 };

/** Two heartbeats that are not answered mean a new connection. Shorter, and a busy server is taken for a dead line. */
const COMMAND_MS_MIN = 1_000;
const COMMAND_MS_MAX = 5_000;

const NOT_COUNTED =
  "Redis does not tell of subscriptions (PUBSUB NUMSUB): a dead leader is replaced when its lease runs out, and a dead node is noticed by its missing heartbeats. Give the nodes a direct URL of the server, and their user the right to PUBSUB: then both are noticed at once.";
const EVICTING = (policy: string): string =>
  `Redis throws keys away when its memory is full (maxmemory-policy ${policy}): a leader whose key is gone loses its term, and messages may be lost. Set maxmemory-policy to noeviction.`;

export class RedisCoordination extends Lifecycle implements Coordination {
  readonly kind = "redis";
  readonly membership: RegisteredMembership<NodeRegistry>;
  readonly #o: RedisCoordinationOptions;
  readonly #control: ControlSession;
  readonly #watch: LifeWatch;
  readonly #locks = new Map<LeaderRole, RedisLock>();

  constructor(options: RedisCoordinationOptions) {
    super();
    this.#o = options;
    const { url, prefix, identity, info, clock, random, log = silentLog, time = null } = options;
    const settings = { ...DEFAULTS, ...options.settings };
    this.#control = new ControlSession({
      url,
      prefix,
      identity,
      clock,
      random,
      time,
      commandMs: Math.min(Math.max(2 * settings.heartbeatMs, COMMAND_MS_MIN), COMMAND_MS_MAX),
      onReady: () => this.#connected(),
      onLost: () => this.#watch.lost(),
      onTold: (subject) => this.#told(subject),
    });
    const control = this.#control;
    const { lookMs } = options;
    this.#watch = new LifeWatch({ control, clock, ...(lookMs === undefined ? {} : { lookMs }) });
    const { deadAfterMs } = settings;
    const registry = new NodeRegistry({ control, identity, info, deadAfterMs });
    this.membership = new RegisteredMembership({ registry, reason, identity, info, clock, log, settings });
  }

  lock(role: LeaderRole): LeaseLock {
    let lock = this.#locks.get(role);
    if (!lock) {
      const { clock, terms, log = silentLog } = this.#o;
      const usable = (): void => {
        if (!this.running) throw new BatonError("STOPPED", "the coordination is not running");
      };
      lock = new RedisLock({ role, control: this.#control, terms, watch: this.#watch, clock, log, usable });
      this.#locks.set(role, lock);
    }
    return lock;
  }

  notes(): readonly string[] {
    const { open, life, evicts } = this.#control;
    return [...(open && life === "" ? [NOT_COUNTED] : []), ...(evicts === null ? [] : [EVICTING(evicts)])];
  }

  protected async onStart(): Promise<void> {
    await this.#control.start();
    try {
      await this.membership.start();
    } catch (error) {
      await this.#control.stop();
      throw error;
    }
  }

  protected async onStop(): Promise<void> {
    await Promise.all([...this.#locks.values()].map((lock) => lock.stop()));
    this.#watch.stop();
    await this.membership.stop();
    await this.#control.stop();
  }

  /** Again after a loss: others may have seen us go, so a leader renews and a heartbeat comes at once. */
  #connected(): void {
    this.membership.hurry();
    for (const lock of this.#locks.values()) lock.hint();
  }

  #told(subject: string): void {
    if (subject === wishSubject(this.#o.identity.name)) this.membership.hurry();
    const role = LEADER_ROLES.find((each) => subjectOf(each) === subject);
    if (role) this.#locks.get(role)?.hint();
  }
}

function reason(error: unknown): string {
  return hasCode(error, "NAME_IN_USE") ? error.message : "no heartbeat reaches Redis; trying on";
}
