/**
 * Coordination through Redis, with a separate store that all nodes share: a key with a lease for each leader role, and
 * an entry for each node. Redis makes it fast. Lost data in Redis costs at most an election, because the store admits
 * every epoch before it counts.
 */

import { LEADER_ROLES, type LeaderRole } from "../../core/leadership/term.ts";
import { silentLog } from "../../platform/log.ts";
import type { TermStore } from "../../store/store.ts";
import { RegisteredCoordination, type RegisteredCoordinationOptions } from "../registered-coordination.ts";
import { RegisteredMembership } from "../registered-membership.ts";
import { ControlSession } from "./control-session.ts";
import { subjectOf } from "./leader-record.ts";
import { IncarnationWatch } from "./incarnation-watch.ts";
import { RedisLock } from "./lock.ts";
import { NodeRegistry, requestSubject } from "./node-registry.ts";

export interface RedisCoordinationOptions extends RegisteredCoordinationOptions {
  /** `redis://user:password@host:6379/0`, or `rediss://` for TLS. */
  readonly url: string;
  /** Of all keys, in braces; clusters that share a Redis differ in it. `baton` unless told otherwise. */
  readonly prefix?: string;
  /** Of the store that all nodes share. */
  readonly terms: TermStore;
  /** How often a standby looks whether the leader is still connected: 50 ms unless told otherwise. */
  readonly lookMs?: number;
}

const NOT_COUNTED =
  "Redis does not tell of subscriptions (PUBSUB NUMSUB): a dead leader is replaced when its lease runs out, and a dead node is noticed by its missing heartbeats. Give the nodes a direct URL of the server, and their user the right to PUBSUB: then both are noticed at once.";
const EVICTING = (policy: string): string =>
  `Redis throws keys away when its memory is full (maxmemory-policy ${policy}): a leader whose key is gone loses its term, and messages may be lost. Set maxmemory-policy to noeviction.`;

export class RedisCoordination extends RegisteredCoordination<NodeRegistry, RedisLock> {
  readonly kind = "redis";
  readonly membership: RegisteredMembership<NodeRegistry>;
  readonly #o: RedisCoordinationOptions;
  protected readonly control: ControlSession;
  readonly #watch: IncarnationWatch;

  constructor(options: RedisCoordinationOptions) {
    super(options);
    this.#o = options;
    const { url, prefix, identity, info, clock, random, log = silentLog, time = null } = options;
    const { settings, commandMs } = this;
    this.control = new ControlSession({
      url,
      prefix,
      identity,
      clock,
      random,
      time,
      commandMs,
      onReady: () => this.#connected(),
      onLost: () => this.#watch.lost(),
      onTold: (subject) => this.#told(subject),
    });
    const control = this.control;
    const { lookMs } = options;
    this.#watch = new IncarnationWatch({ control, clock, ...(lookMs === undefined ? {} : { lookMs }) });
    const { deadAfterMs } = settings;
    const registry = new NodeRegistry({ control, identity, info, deadAfterMs });
    this.membership = new RegisteredMembership({
      registry,
      at: "Redis",
      identity,
      info,
      clock,
      log,
      settings,
    });
  }

  protected openLock(role: LeaderRole): RedisLock {
    const { clock, terms, log = silentLog } = this.#o;
    return new RedisLock({ role, control: this.control, terms, watch: this.#watch, clock, log, owner: this });
  }

  notes(): readonly string[] {
    const { open, life, evicts } = this.control;
    return [...(open && life === "" ? [NOT_COUNTED] : []), ...(evicts === null ? [] : [EVICTING(evicts)])];
  }

  protected override async onStop(): Promise<void> {
    await super.onStop();
    this.#watch.stop();
  }

  /** Again after a loss: others may have seen us go, so a leader renews and a heartbeat comes at once. */
  #connected(): void {
    this.membership.hurry();
    for (const lock of this.locks.values()) lock.hint();
  }

  #told(subject: string): void {
    if (subject === requestSubject(this.#o.identity.name)) this.membership.hurry();
    const role = LEADER_ROLES.find((each) => subjectOf(each) === subject);
    if (role) this.locks.get(role)?.hint();
  }
}
