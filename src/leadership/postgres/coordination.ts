/**
 * Coordination through the database of the jobs: a row for each node, a row with a lease for each leader role, and
 * nothing else to install. A node holds one session for itself and one for each role that it is a candidate for,
 * separate from the pool of the store: leases and heartbeats never wait for other work.
 */

import { LEADER_ROLES, type LeaderRole } from "../../core/leadership/term.ts";
import { plainSchema } from "../../platform/drivers/postgres/postgres.ts";
import { PoolerCheck } from "../../platform/drivers/postgres/pooler-check.ts";
import { silentLog } from "../../platform/log.ts";
import { RegisteredCoordination, type RegisteredCoordinationOptions } from "../registered-coordination.ts";
import { RegisteredMembership } from "../registered-membership.ts";
import { ControlSession } from "./control-session.ts";
import { subjectOf } from "./leader-record.ts";
import { PostgresLock } from "./lock.ts";
import { NodeRegistry, requestSubject } from "./node-registry.ts";

export interface PostgresCoordinationOptions extends RegisteredCoordinationOptions {
  /** `postgres://user@host:port/database`; behind a pooler that works by transactions everything takes longer. */
  readonly url: string;
  readonly schema?: string;
  readonly pooler?: PoolerCheck;
}

const POOLED =
  "The connections go through a pooler that gives each transaction another session, so session locks and notifications are not used. A dead leader is replaced when its lease runs out, a dead node is noticed by its missing heartbeats, and what other nodes submit, cancel or log is noticed by looking, within a second or two; changed schedules within five. Give the nodes a direct URL of the database, or use the pooler's session mode: then all of it is noticed at once.";
const NOT_EVICTING =
  "The database user may not end sessions of other nodes: a leader that was paused inside a transaction holds up its successor until that transaction times out. Let all nodes use one database user, or grant it pg_signal_backend.";

export class PostgresCoordination extends RegisteredCoordination<NodeRegistry, PostgresLock> {
  readonly kind = "postgres";
  readonly membership: RegisteredMembership<NodeRegistry>;
  readonly #o: PostgresCoordinationOptions;
  protected readonly control: ControlSession;

  constructor(options: PostgresCoordinationOptions) {
    super(options);
    this.#o = options;
    const { url, identity, info, clock, random, log = silentLog, time = null } = options;
    const { settings, commandMs } = this;
    this.control = new ControlSession({
      url,
      schema: plainSchema(options.schema),
      identity,
      clock,
      random,
      time,
      pooler: options.pooler ?? new PoolerCheck({ url, clock }),
      statementMs: commandMs,
      onReady: () => this.membership.hurry(),
      onTold: (subject) => this.#told(subject),
    });
    const control = this.control;
    const { deadAfterMs } = settings;
    const registry = new NodeRegistry({ control, identity, info, deadAfterMs });
    this.membership = new RegisteredMembership({
      registry,
      at: "the database",
      identity,
      info,
      clock,
      log,
      settings,
    });
  }

  protected openLock(role: LeaderRole): PostgresLock {
    const { identity, clock, log = silentLog } = this.#o;
    return new PostgresLock({ role, identity, control: this.control, clock, log, owner: this });
  }

  notes(): readonly string[] {
    const refused = [...this.locks.values()].some((lock) => lock.evictionRefused);
    return [...(this.control.pooled ? [POOLED] : []), ...(refused ? [NOT_EVICTING] : [])];
  }

  #told(subject: string): void {
    if (subject === requestSubject(this.#o.identity.name)) this.membership.hurry();
    const role = LEADER_ROLES.find((each) => subjectOf(each) === subject);
    if (role) this.locks.get(role)?.hint();
  }
}
