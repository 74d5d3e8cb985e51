/**
 * One advisory lock in a dedicated session. Waiting sessions block in the server, first come first served, and one of
 * them gets the lock at the moment the holder's session ends, for whatever reason.
 *
 *     IDLE --want()--> WAITING ------> HELD
 *      ^                  |             |
 *      '---- leave(), the session broke, unlock()
 *
 * A waiting statement keeps its snapshot, and no row that has died since is removed anywhere in the database: the hot
 * tables of a queue would grow for as long as a standby waits. So it waits for a moment, and then again.
 */

import { createHash } from "node:crypto";
import { LEADER_ROLES, type LeaderRole } from "../../core/leadership/term.ts";
import type { Clock } from "../../platform/clock.ts";
import { read, write, type Queryable, type Statement } from "../../platform/drivers/postgres/postgres.ts";
import { PostgresSession } from "../../platform/drivers/postgres/session.ts";
import type { ControlSession } from "./control-session.ts";

interface AdvisoryLockOptions {
  readonly key: bigint;
  readonly control: ControlSession;
  readonly clock: Clock;
  readonly onHeld: () => void;
  /** The session broke, and with it whatever stood on the lock. */
  readonly onLost: () => void;
}

const PID = read("lock-pid", "SELECT pg_backend_pid() AS pid");
/**
 * Longer, and dead rows stay for that long; from 1 s on (deadlock_timeout) the server may also log every wait. Shorter means more
 * statements while nothing happens.
 */
const WAIT_MS = 900;
/** True where `waitFor` got the lock, behind which it is sent. */
const GOT_IT = read("lock-got", "SELECT current_setting('baton_lock.got', true) = 'yes' AS got");
const UNLOCK = write("lock-unlock", "SELECT pg_advisory_unlock($1::bigint)");
const END_SESSION = write("lock-end-session", "SELECT pg_terminate_backend($1::int)");

/** A DO block, because an error that is caught there is not logged by the server. */
function waitFor(key: bigint): Statement {
  return write(
    `lock-wait-${key}`,
    `DO $$ BEGIN
       SET LOCAL lock_timeout = ${WAIT_MS};
       PERFORM pg_advisory_lock(${key}), set_config('baton_lock.got', 'yes', false);
     EXCEPTION WHEN lock_not_available THEN
       PERFORM set_config('baton_lock.got', 'no', false);
     END $$`,
  );
}

export class AdvisoryLock implements Queryable {
  readonly #o: AdvisoryLockOptions;
  readonly #session: PostgresSession;
  #state: "idle" | "waiting" | "held" = "idle";
  /** Whether to stand in line, also again after the session broke. */
  #wanted = false;
  /** Distinguishes a late answer of an earlier session. */
  #turn = 0;
  #pid = 0;
  #starting: Promise<void> | null = null;
  readonly #waiters = new Set<() => void>();

  constructor(options: AdvisoryLockOptions) {
    this.#o = options;
    this.#session = new PostgresSession({
      ...options.control.sessionOptions(),
      onOpen: async (session) => {
        const [self] = await session.query<{ pid: number }>(PID);
        this.#pid = self!.pid;
      },
      onReady: () => this.#queue(),
      onLost: () => this.#lost(),
    });
  }

  get held(): boolean {
    return this.#state === "held";
  }

  /** Of the session in use. */
  get pid(): number {
    return this.#pid;
  }

  /** Stands in line, and stays there through broken sessions until `leave` or `unlock`. */
  want(): void {
    this.#wanted = true;
    if (this.#session.running) return this.#queue();
    // A database that is away is tried again with the next call; after the first success the session sees to itself.
    this.#starting ??= this.#session
      .start()
      .catch(() => {})
      .finally(() => (this.#starting = null));
  }

  /** True as soon as the lock is ours; false when it was not within that time. */
  async heldWithin(ms: number): Promise<boolean> {
    if (this.held) return true;
    const over = new AbortController();
    const wake = (): void => over.abort();
    this.#waiters.add(wake);
    await this.#o.clock.sleep(ms, over.signal);
    this.#waiters.delete(wake);
    return this.held;
  }

  query<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    return this.#session.query(statement, values);
  }

  /** Gives the lock back; what was sent before has been done by then. Out of the line until the next `want`. */
  async unlock(): Promise<void> {
    this.#wanted = false;
    if (this.#state !== "held") return;
    this.#state = "idle";
    try {
      await this.#session.query(UNLOCK, [String(this.#o.key)]);
    } catch (error) {
      this.#session.reset("it could not give its lock back");
      throw error;
    }
  }

  /** Out of the line, without the lock. */
  async leave(): Promise<void> {
    if (this.held) return this.unlock();
    this.#wanted = false;
    if (this.#state !== "waiting") return;
    // The server would notice a second later that no caller waits any more, and until then serve us in vain.
    await this.#o.control
      .query(END_SESSION, [this.#pid])
      .catch(() => this.#session.reset("nobody waits for its lock any more"));
  }

  async stop(): Promise<void> {
    this.#turn += 1;
    this.#wanted = false;
    // A lock that is held goes with the session.
    if (!this.held) await this.leave().catch(() => {});
    await this.#starting;
    await this.#session.stop();
    this.#state = "idle";
  }

  #queue(): void {
    if (!this.#wanted || this.#state !== "idle" || !this.#session.open) return;
    this.#state = "waiting";
    const turn = ++this.#turn;
    void this.#wait(turn).then(
      () => {
        if (turn !== this.#turn) return;
        this.#state = "held";
        for (const wake of this.#waiters) wake();
        this.#o.onHeld();
      },
      () => {
        if (turn === this.#turn) this.#state = "idle";
      },
    );
  }

  /** Until we have it; rejects when the session breaks. */
  async #wait(turn: number): Promise<void> {
    const forIt = waitFor(this.#o.key);
    const unbounded = { deadlineMs: null };
    while (turn === this.#turn) {
      const [, [answer]] = await Promise.all([
        this.#session.query(forIt, [], unbounded),
        this.#session.query<{ got: boolean | null }>(GOT_IT, [], unbounded),
      ]);
      if (answer?.got) return;
    }
  }

  #lost(): void {
    this.#turn += 1;
    this.#state = "idle";
    this.#o.onLost();
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
  const hash = createHash("sha256").update(schema).digest().readBigUInt64BE();
  return BigInt.asIntN(64, key ^ (hash << ROLE_BITS));
}

/**
 * All advisory locks that are held in this database, as the numbers that they were asked for with.
 * `pg_locks` shows a number in two halves.
 */
export const HELD_LOCKS = `
  SELECT (classid::bigint << 32) | objid::bigint AS key, pid FROM pg_locks
  WHERE locktype = 'advisory' AND granted AND objsubid = 1
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/** The lock of one incarnation of a node, given as an SQL expression. The schema is part of it. */
export function incarnationLock(incarnation: string): string {
  return `hashtextextended('baton.node/' || ${incarnation}, 0)`;
}
