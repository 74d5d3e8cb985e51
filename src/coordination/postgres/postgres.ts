/**
 * Coordination through the database that keeps the jobs: a row for each node, a row with a lease for each leader role, and
 * nothing else to install. A node holds a session for itself and one for each role that it stands for, apart from the
 * store's pool: leases and heartbeats never wait behind other work.
 */

import { BatonError, hasCode } from "../../core/errors.ts";
import type { NodeIdentity, OwnInfo } from "../../core/node.ts";
import { LEADER_ROLES, type LeaderRole } from "../../core/term.ts";
import type { Clock } from "../../platform/clock.ts";
import { plainSchema } from "../../platform/drivers/postgres.ts";
import { PoolerCheck } from "../../platform/drivers/postgres-pooler.ts";
import { silentLog, type Log } from "../../platform/log.ts";
import type { Random } from "../../platform/random.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { Coordination, LeaseLock } from "../coordination.ts";
import { ControlSession } from "./control-session.ts";
import { subjectOf } from "./leader-rows.ts";
import { PostgresLock } from "./lock.ts";
import { RegisteredMembership, type MembershipSettings } from "../registered-membership.ts";
import { NodeRegistry, wishSubject } from "./registry.ts";

export interface PostgresCoordinationOptions {
  /** `postgres://user@host:port/database`; behind a pooler that works by transactions everything takes longer. */
  readonly url: string;
  readonly schema?: string;
  readonly identity: NodeIdentity;
  /** Read with every heartbeat and whenever the node is shown. */
  readonly info: () => OwnInfo;
  readonly clock: Clock;
  readonly random: Random;
  readonly log?: Log;
  readonly settings?: Partial<MembershipSettings>;
  readonly pooler?: PoolerCheck;
  /** Takes the place of the database's clock: for tests, which move it by hand. */
  readonly time?: Clock;
}

const DEFAULTS: MembershipSettings = { heartbeatMs: 1_000, deadAfterMs: 5_000, forgetAfterMs: 3_600_000 };

/** Two heartbeats that are not answered mean a new connection. Shorter, and a busy server is taken for a dead line. */
const STATEMENT_MS_MIN = 1_000;
const STATEMENT_MS_MAX = 5_000;

const POOLED =
  "The connections go through a pooler that gives each transaction another session, so session locks and notifications are not used. A dead leader is replaced when its lease runs out, a dead node is noticed by its missing heartbeats, and what other nodes submit, cancel or log is noticed by looking, within a second or two; changed schedules within five. Give the nodes a direct URL of the database, or use the pooler's session mode: then all of it is noticed at once.";
const NOT_EVICTING =
  "The database user may not end sessions of other nodes: a leader that was paused inside a transaction holds up its successor until that transaction times out. Let all nodes use one database user, or grant it pg_signal_backend.";

export class PostgresCoordination extends Lifecycle implements Coordination {
  readonly kind = "postgres";
  readonly membership: RegisteredMembership<NodeRegistry>;
  readonly #o: PostgresCoordinationOptions;
  readonly #control: ControlSession;
  readonly #locks = new Map<LeaderRole, PostgresLock>();

  constructor(options: PostgresCoordinationOptions) {
    super();
    this.#o = options;
    const { url, identity, info, clock, random, log = silentLog, time = null } = options;
    const settings = { ...DEFAULTS, ...options.settings };
    this.#control = new ControlSession({
      url,
      schema: plainSchema(options.schema),
      identity,
      clock,
      random,
      time,
      pooler: options.pooler ?? new PoolerCheck({ url, clock }),
      statementMs: Math.min(Math.max(2 * settings.heartbeatMs, STATEMENT_MS_MIN), STATEMENT_MS_MAX),
      onReady: () => this.membership.hurry(),
      onTold: (subject) => this.#told(subject),
    });
    const control = this.#control;
    const { deadAfterMs } = settings;
    const registry = new NodeRegistry({ control, identity, info, deadAfterMs });
    this.membership = new RegisteredMembership({ registry, reason, identity, info, clock, log, settings });
  }

  lock(role: LeaderRole): LeaseLock {
    let lock = this.#locks.get(role);
    if (!lock) {
      const { identity, clock, log = silentLog } = this.#o;
      const usable = (): void => {
        if (!this.running) throw new BatonError("STOPPED", "the coordination is not running");
      };
      lock = new PostgresLock({ role, identity, control: this.#control, clock, log, usable });
      this.#locks.set(role, lock);
    }
    return lock;
  }

  notes(): readonly string[] {
    const refused = [...this.#locks.values()].some((lock) => lock.evictionRefused);
    return [...(this.#control.pooled ? [POOLED] : []), ...(refused ? [NOT_EVICTING] : [])];
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

  #told(subject: string): void {
    if (subject === wishSubject(this.#o.identity.name)) this.membership.hurry();
    const role = LEADER_ROLES.find((each) => subjectOf(each) === subject);
    if (role) this.#locks.get(role)?.hint();
  }
}

function reason(error: unknown): string {
  return hasCode(error, "NAME_IN_USE") ? error.message : "no heartbeat reaches the database; trying on";
}
