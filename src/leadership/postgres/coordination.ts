/**
 * Coordination of nodes that share a database: a row for each node and, unless another backend elects, a row with a
 * lease for each leader role. A node holds one session for itself and one for the locks of the roles, separate from the
 * pool of the store: leases and heartbeats never wait for other work.
 */

import type { OwnInfo } from "../../core/node.ts";
import type { LeaderRole } from "../../core/leadership/term.ts";
import { plainSchema } from "../../platform/drivers/postgres/postgres.ts";
import { poolerCheck, type PoolerCheck } from "../../platform/drivers/postgres/pooler-check.ts";
import { silentLog } from "../../platform/log.ts";
import { startWith } from "../../platform/service.ts";
import type { Coordination, LeaderLocks, LeaseLock } from "../coordination.ts";
import { commandMsOf, ServerLocks, type LeaderLocksOptions } from "../server-locks.ts";
import { AdvisoryLocks } from "./advisory-lock.ts";
import { ControlSession } from "./control-session.ts";
import { PostgresLock } from "./lock.ts";
import { PostgresMembership, type MembershipSettings } from "./membership.ts";
import { NodeRegistry, requestSubject } from "./node-registry.ts";

export interface PostgresCoordinationOptions extends LeaderLocksOptions {
  readonly schema?: string;
  readonly pooler?: PoolerCheck;
  readonly info: () => OwnInfo;
  readonly settings?: Partial<MembershipSettings>;
}

const DEFAULTS: MembershipSettings = { heartbeatMs: 1_000, deadAfterMs: 5_000, forgetAfterMs: 3_600_000 };

const POOLED =
  "The database connections go through a pooler that gives each transaction another session, so session locks and notifications are not used. A dead node is noticed by its missing heartbeats, a leader that PostgreSQL elected is replaced when its lease ends, and what other nodes submit, cancel or log is noticed by polling, within a second or two; changed schedules within five. Give the nodes a direct URL of the database, or use the pooler's session mode: then all of it is noticed at once.";
const NOT_EVICTING =
  "The database user may not end sessions of other nodes: a leader that was paused inside a transaction delays its successor until that transaction times out. Let all nodes use one database user, or grant it pg_signal_backend.";

export class PostgresCoordination extends ServerLocks<PostgresLock> implements Coordination {
  readonly kind: string;
  readonly membership: PostgresMembership;
  readonly #o: PostgresCoordinationOptions;
  readonly #control: ControlSession;
  readonly #advisoryLocks: AdvisoryLocks;
  /** Another backend that elects; null when PostgreSQL does. */
  readonly #elsewhere: LeaderLocks | null;

  /** The url is `postgres://user@host:port/database`; behind a pooler that works by transactions everything takes longer. */
  constructor(options: PostgresCoordinationOptions, elsewhere: LeaderLocks | null = null) {
    super();
    this.#o = options;
    this.#elsewhere = elsewhere;
    this.kind = elsewhere?.kind ?? "postgres";
    const { identity, info, log = silentLog, time = null } = options;
    const settings = { ...DEFAULTS, ...options.settings };
    this.#control = new ControlSession({
      ...options,
      schema: plainSchema(options.schema),
      time,
      pooler: options.pooler ?? poolerCheck(options),
      statementMs: commandMsOf(settings),
      onReady: () => {
        this.membership.hurry();
        this.hintAll();
      },
      onNotification: (subject) => {
        if (subject === requestSubject(identity.name)) this.membership.hurry();
        else this.lockOf(subject)?.hint();
      },
    });
    this.#advisoryLocks = new AdvisoryLocks(this.#control, options.clock);
    const registry = new NodeRegistry(this.#control, identity, info, settings.deadAfterMs);
    this.membership = new PostgresMembership({ ...options, log, registry, info, settings });
  }

  override lock(role: LeaderRole): LeaseLock {
    return this.#elsewhere ? this.#elsewhere.lock(role) : super.lock(role);
  }

  protected openLock(role: LeaderRole): PostgresLock {
    const { identity, clock, log = silentLog } = this.#o;
    const [control, advisoryLocks] = [this.#control, this.#advisoryLocks];
    return new PostgresLock({ role, identity, control, advisoryLocks, clock, log, owner: this });
  }

  notes(): readonly string[] {
    const refused = [...this.locks.values()].some((lock) => lock.evictionRefused);
    return [
      ...(this.#control.pooled ? [POOLED] : []),
      ...(refused ? [NOT_EVICTING] : []),
      ...(this.#elsewhere?.notes() ?? []),
    ];
  }

  protected async onStart(): Promise<void> {
    await startWith(this.#control, async () => {
      if (this.#elsewhere) await startWith(this.#elsewhere, () => this.membership.start());
      else await this.membership.start();
    });
  }

  protected async onStop(): Promise<void> {
    await this.stopLocks();
    await this.#elsewhere?.stop();
    await this.membership.stop();
    await this.#control.stop();
  }
}
