/**
 * The advisory locks of the leader roles, in one dedicated session. A session that holds none of them blocks in the
 * server on the first lock that is wanted, and gets it at the moment the holder's session ends, for whatever reason. It
 * then tries for the others at once: a dead leader has usually led in all roles.
 *
 *     IDLE --want()--> WAITING ------> HELD
 *      ^                  |             |
 *      '---- leave(), the session broke, unlock()
 *
 * A session that holds a lock never blocks, because the renewals of its terms go through it; it tries for the others
 * now and then. A blocked statement keeps its snapshot, and no row that has died since is removed anywhere in the
 * database. So it waits for a moment, and then again.
 */

import { hash } from "node:crypto";
import { LEADER_ROLES, type LeaderRole } from "../../core/leadership/term.ts";
import type { Clock } from "../../platform/clock.ts";
import { read, write, type Queryable, type Statement } from "../../platform/drivers/postgres/postgres.ts";
import { PostgresSession } from "../../platform/drivers/postgres/session.ts";
import { Pause } from "../../platform/loop.ts";
import type { ControlSession } from "./control-session.ts";

interface LockEvents {
  readonly onHeld: () => void;
  /** The session broke, and with it whatever stood on the lock. */
  readonly onLost: () => void;
}

const PID = read("lock-pid", "SELECT pg_backend_pid() AS pid");
/** Longer, and dead rows stay for that long, and from 1 s on (deadlock_timeout) the server may log every wait. */
const WAIT_MS = 900;
/** The first of these locks that is free, or the first of all if it becomes free within the time; null if none does. */
const TAKE = write("lock-take", "SELECT baton.take_lock($1::bigint[], $2::int)::text AS key");
const UNLOCK = write("lock-unlock", "SELECT pg_advisory_unlock($1::bigint)");
const END_SESSION = write("lock-end-session", "SELECT pg_terminate_backend($1::int)");

export class AdvisoryLocks implements Queryable {
  readonly #control: ControlSession;
  readonly #session: PostgresSession;
  readonly #locks: AdvisoryLock[] = [];
  readonly #clock: Clock;
  readonly #pause: Pause;
  /** Distinguishes a late answer of an earlier session. */
  #turn = 0;
  #asking = false;
  #blockedOn: AdvisoryLock | null = null;
  pid = 0;
  #starting: Promise<void> | null = null;

  constructor(control: ControlSession, clock: Clock) {
    this.#control = control;
    this.#clock = clock;
    this.#pause = new Pause(clock);
    this.#session = new PostgresSession({
      ...control.sessionOptions(),
      onOpen: async (session) => {
        const [self] = await session.query<{ pid: number }>(PID);
        this.pid = self!.pid;
      },
      onReady: () => this.ask(),
      onLost: () => this.#lost(),
    });
  }

  lock(key: bigint, events: LockEvents): AdvisoryLock {
    const lock = new AdvisoryLock(this, this.#clock, key, events);
    this.#locks.push(lock);
    return lock;
  }

  query<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    return this.#session.query(statement, values);
  }

  /** Asks for the locks that are wanted, until we have them. */
  ask(): void {
    this.#pause.wake();
    if (!this.#session.open && !this.#session.running) return this.#start();
    if (this.#asking || !this.#session.open) return;
    this.#asking = true;
    const turn = this.#turn;
    void this.#take(turn).catch(() => {
      // The next `want` asks again; a session that broke asks when it is ready.
      if (turn !== this.#turn) return;
      this.#asking = false;
      this.#blockedOn = null;
    });
  }

  async unlock(lock: AdvisoryLock): Promise<void> {
    try {
      await this.#session.query(UNLOCK, [String(lock.key)]);
    } catch (error) {
      this.#session.reset("it could not give its lock back");
      throw error;
    }
  }

  /** The server would notice a second later that no caller waits any more, and until then serve us in vain. */
  async stopWaiting(lock: AdvisoryLock): Promise<void> {
    if (this.#blockedOn !== lock) return;
    await this.#control
      .query(END_SESSION, [this.pid])
      .catch(() => this.#session.reset("its lock is not wanted any more"));
  }

  /** A lock that is held goes with the session. */
  async stop(): Promise<void> {
    for (const lock of this.#locks) lock.wanted = false;
    if (this.#blockedOn) await this.stopWaiting(this.#blockedOn).catch(() => {});
    await this.#starting;
    await this.#session.stop();
    this.#end();
  }

  /** A database that is away is tried again with the next call; after the first success the session sees to itself. */
  #start(): void {
    this.#starting ??= this.#session
      .start()
      .catch(() => {})
      .finally(() => (this.#starting = null));
  }

  async #take(turn: number): Promise<void> {
    for (;;) {
      const wanted = this.#locks.filter((lock) => lock.wanted && !lock.held);
      if (wanted.length === 0) {
        this.#asking = false;
        return;
      }
      const holds = this.#locks.some((lock) => lock.held);
      this.#pause.clear();
      this.#blockedOn = holds ? null : wanted[0]!;
      const keys = wanted.map(({ key }) => String(key));
      const [row] = await this.#session.query<{ key: string | null }>(TAKE, [keys, holds ? 0 : WAIT_MS], {
        deadlineMs: null,
      });
      if (turn !== this.#turn) return;
      this.#blockedOn = null;
      const taken = wanted.find(({ key }) => String(key) === row!.key);
      if (taken?.wanted) taken.take();
      else if (taken) await this.unlock(taken);
      else if (holds) await this.#pause.sleep(WAIT_MS);
      if (turn !== this.#turn) return;
    }
  }

  #lost(): void {
    this.#end();
    for (const lock of this.#locks) lock.events.onLost();
  }

  #end(): void {
    this.#turn += 1;
    this.#asking = false;
    this.#blockedOn = null;
    this.#pause.wake();
    for (const lock of this.#locks) lock.held = false;
  }
}

export class AdvisoryLock {
  readonly key: bigint;
  wanted = false;
  held = false;
  readonly events: LockEvents;
  readonly #locks: AdvisoryLocks;
  readonly #wait: Pause;

  constructor(locks: AdvisoryLocks, clock: Clock, key: bigint, events: LockEvents) {
    this.#locks = locks;
    this.#wait = new Pause(clock);
    this.key = key;
    this.events = events;
  }

  /** Stands in line, also after the session broke, until `leave` or `unlock`. */
  want(): void {
    this.wanted = true;
    if (!this.held) this.#locks.ask();
  }

  async heldWithin(ms: number): Promise<boolean> {
    if (this.held) return true;
    this.#wait.clear();
    await this.#wait.sleep(ms);
    return this.held;
  }

  /** Gives the lock back; what was sent before has been done by then. Out of the line until the next `want`. */
  async unlock(): Promise<void> {
    this.wanted = false;
    if (!this.held) return;
    this.held = false;
    await this.#locks.unlock(this);
  }

  async leave(): Promise<void> {
    if (this.held) return this.unlock();
    this.wanted = false;
    await this.#locks.stopWaiting(this);
  }

  take(): void {
    this.held = true;
    this.#wait.wake();
    this.events.onHeld();
  }
}

/** "BATON" in hex, with room for one byte. */
const LEADER_LOCK = 0x42_4154_4f4e_00n;

/** The last byte is the place of the role in the list of roles, from 1 on: ...01 is the scheduler's, as people see it in `pg_locks`. */
export const LEADER_LOCKS = Object.fromEntries(
  LEADER_ROLES.map((role, at) => [role, LEADER_LOCK + BigInt(at + 1)]),
) as Readonly<Record<LeaderRole, bigint>>;

const DEFAULT_SCHEMA = "baton";
const ROLE_BITS = 8n;

/** Two clusters in one database have different schemas, and so different locks. */
export function leaderLock(role: LeaderRole, schema: string): bigint {
  const key = LEADER_LOCKS[role];
  if (schema === DEFAULT_SCHEMA) return key;
  const own = hash("sha256", schema, "buffer").readBigUInt64BE();
  return BigInt.asIntN(64, key ^ (own << ROLE_BITS));
}

/** All advisory locks that are held in this database. `pg_locks` shows their numbers in two halves. */
export const HELD_LOCKS = `
  SELECT (classid::bigint << 32) | objid::bigint AS key, pid FROM pg_locks
  WHERE locktype = 'advisory' AND granted AND objsubid = 1
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/** The lock of one incarnation of a node, given as an SQL expression. The schema is part of it. */
export function incarnationLock(incarnation: string): string {
  return `hashtextextended('baton.node/' || ${incarnation}, 0)`;
}
