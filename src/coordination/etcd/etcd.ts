/**
 * Coordination through etcd, beside a store that all nodes share: a key under a lease for each leader role, and an entry for each
 * node. Whatever happens to etcd costs an election and no more, because the store admits every epoch before it counts.
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
import { RegisteredMembership, type MembershipSettings } from "../registered-membership.ts";
import { ControlSession } from "./control-session.ts";
import { leaderKey } from "./leader-keys.ts";
import { EtcdLock } from "./lock.ts";
import { NodeRegistry } from "./registry.ts";

export interface EtcdCoordinationOptions {
  /** `http://user:password@host:2379`, or `https://` for TLS; several members with commas between them. */
  readonly url: string;
  /** First part of all keys; clusters that share an etcd differ in it. `baton` unless told otherwise. */
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
  /** Takes the place of our clock where leases are counted: for tests, which move it by hand. */
  readonly time?: Clock;
}

const DEFAULTS: MembershipSettings = { heartbeatMs: 1_000, deadAfterMs: 5_000, forgetAfterMs: 3_600_000 };

/** Two heartbeats that are not answered mean another member. Shorter, and a busy server is taken for a dead one. */
const COMMAND_MS_MIN = 1_000;
const COMMAND_MS_MAX = 5_000;

export class EtcdCoordination extends Lifecycle implements Coordination {
  readonly kind = "etcd";
  readonly membership: RegisteredMembership<NodeRegistry>;
  readonly #o: EtcdCoordinationOptions;
  readonly #control: ControlSession;
  readonly #locks = new Map<LeaderRole, EtcdLock>();

  constructor(options: EtcdCoordinationOptions) {
    super();
    this.#o = options;
    const { url, prefix = "baton", identity, info, clock, random, log = silentLog, time = null } = options;
    const settings = { ...DEFAULTS, ...options.settings };
    this.#control = new ControlSession({
      url,
      prefix,
      identity,
      clock,
      random,
      time,
      commandMs: Math.min(Math.max(2 * settings.heartbeatMs, COMMAND_MS_MIN), COMMAND_MS_MAX),
      onReady: () => this.#watching(),
      onLeader: (key, revision, deleted) => {
        const role = LEADER_ROLES.find((each) => leaderKey(this.#control, each) === key);
        if (role) this.#locks.get(role)?.told(revision, deleted);
      },
      onCalled: () => this.membership.hurry(),
    });
    const { deadAfterMs, forgetAfterMs } = settings;
    const registry = new NodeRegistry({
      control: this.#control,
      identity,
      info,
      deadAfterMs,
      forgetAfterMs,
    });
    this.membership = new RegisteredMembership({ registry, reason, identity, info, clock, log, settings });
  }

  lock(role: LeaderRole): LeaseLock {
    let lock = this.#locks.get(role);
    if (!lock) {
      const { clock, terms, log = silentLog } = this.#o;
      const usable = (): void => {
        if (!this.running) throw new BatonError("STOPPED", "the coordination is not running");
      };
      lock = new EtcdLock({ role, control: this.#control, terms, clock, log, usable });
      this.#locks.set(role, lock);
    }
    return lock;
  }

  notes(): readonly string[] {
    return [...this.#control.failures].map(
      ([endpoint, why]) =>
        `etcd at ${endpoint} did not answer this node when it was asked last (${why}); another member is used.`,
    );
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
    await this.membership.stop();
    await this.#control.stop();
  }

  /** Again after a loss: something may have been missed, so a leader renews and a heartbeat comes at once. */
  #watching(): void {
    this.membership.hurry();
    for (const lock of this.#locks.values()) lock.hint();
  }
}

function reason(error: unknown): string {
  return hasCode(error, "NAME_IN_USE") ? error.message : "no heartbeat reaches etcd; trying on";
}
