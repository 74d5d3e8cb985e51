/**
 * Coordination through etcd, with a separate store that all nodes share: a key under a lease for each leader role, and
 * an entry for each node. A failure of etcd costs at most an election, because the store admits every epoch before it
 * counts.
 */

import { LEADER_ROLES, type LeaderRole } from "../../core/leadership/term.ts";
import { silentLog } from "../../platform/log.ts";
import type { TermStore } from "../../store/store.ts";
import { RegisteredCoordination, type RegisteredCoordinationOptions } from "../registered-coordination.ts";
import { RegisteredMembership } from "../registered-membership.ts";
import { ControlSession } from "./control-session.ts";
import { leaderKey } from "./leader-record.ts";
import { EtcdLock } from "./lock.ts";
import { NodeRegistry } from "./node-registry.ts";

export interface EtcdCoordinationOptions extends RegisteredCoordinationOptions {
  /** `http://user:password@host:2379`, or `https://` for TLS; several members with commas between them. */
  readonly url: string;
  /** First part of all keys; clusters that share an etcd differ in it. `baton` unless told otherwise. */
  readonly prefix?: string;
  /** Of the store that all nodes share. */
  readonly terms: TermStore;
}

export class EtcdCoordination extends RegisteredCoordination<NodeRegistry, EtcdLock> {
  readonly kind = "etcd";
  readonly membership: RegisteredMembership<NodeRegistry>;
  readonly #o: EtcdCoordinationOptions;
  protected readonly control: ControlSession;

  constructor(options: EtcdCoordinationOptions) {
    super(options);
    this.#o = options;
    const { url, prefix = "baton", identity, info, clock, random, log = silentLog, time = null } = options;
    const { settings, commandMs } = this;
    this.control = new ControlSession({
      url,
      prefix,
      identity,
      clock,
      random,
      time,
      commandMs,
      onReady: () => this.#watching(),
      onLeader: (key, revision, deleted) => {
        const role = LEADER_ROLES.find((each) => leaderKey(this.control, each) === key);
        if (role) this.locks.get(role)?.told(revision, deleted);
      },
      onCalled: () => this.membership.hurry(),
    });
    const { deadAfterMs, forgetAfterMs } = settings;
    const registry = new NodeRegistry({
      control: this.control,
      identity,
      info,
      deadAfterMs,
      forgetAfterMs,
    });
    this.membership = new RegisteredMembership({
      registry,
      at: "etcd",
      identity,
      info,
      clock,
      log,
      settings,
    });
  }

  protected openLock(role: LeaderRole): EtcdLock {
    const { clock, terms, log = silentLog } = this.#o;
    return new EtcdLock({ role, control: this.control, terms, clock, log, owner: this });
  }

  notes(): readonly string[] {
    return [...this.control.failures].map(
      ([endpoint, why]) =>
        `etcd at ${endpoint} did not answer this node when it was asked last (${why}); another member is used.`,
    );
  }

  /** Again after a loss: something may have been missed, so a leader renews and a heartbeat comes at once. */
  #watching(): void {
    this.membership.hurry();
    for (const lock of this.locks.values()) lock.hint();
  }
}
