/** The locks of all leader roles on one server. A backend supplies the session with the server and the lock of a role. */

import { LEADER_ROLES, type LeaderRole } from "../core/leadership/term.ts";
import type { Clock } from "../platform/clock.ts";
import type { Platform } from "../platform/platform.ts";
import { Lifecycle } from "../platform/service.ts";
import type { TermStore } from "../store/store.ts";
import type { LeaderLocks, LeaseLock } from "./coordination.ts";

export interface LeaderLocksOptions extends Pick<Platform, "identity" | "clock" | "random"> {
  readonly url: string;
  readonly log?: Platform["log"];
  readonly settings?: { readonly heartbeatMs?: number };
  /** Takes the place of the clock by which leases are counted: for tests, which move it by hand. */
  readonly time?: Clock;
}

/** Where a server other than the store elects: the store, which all nodes share, admits the terms. */
export interface AdmittedLocksOptions extends LeaderLocksOptions {
  readonly terms: TermStore;
  /** First part of all keys; clusters that share a server differ in it. */
  readonly prefix?: string;
}

interface ServerLock extends LeaseLock {
  hint(): void;
  stop(): Promise<void>;
}

/** Shorter, and a busy server is taken for a dead one. */
const COMMAND_MS_MIN = 1_000;
const COMMAND_MS_MAX = 5_000;

/** Two heartbeats without an answer mean a new connection, or another server. */
export function commandMsOf({ heartbeatMs = 1_000 }: { readonly heartbeatMs?: number } = {}): number {
  return Math.min(Math.max(2 * heartbeatMs, COMMAND_MS_MIN), COMMAND_MS_MAX);
}

/** Of a notification about the leader. */
export function subjectOf(role: LeaderRole): string {
  return `leader/${role}`;
}

export abstract class ServerLocks<Lock extends ServerLock> extends Lifecycle implements LeaderLocks {
  abstract readonly kind: string;
  protected readonly locks = new Map<LeaderRole, Lock>();

  protected abstract openLock(role: LeaderRole): Lock;
  abstract notes(): readonly string[];

  lock(role: LeaderRole): LeaseLock {
    const lock = this.locks.get(role) ?? this.openLock(role);
    this.locks.set(role, lock);
    return lock;
  }

  protected lockOf(subject: string, nameOf: (role: LeaderRole) => string = subjectOf): Lock | undefined {
    const role = LEADER_ROLES.find((each) => nameOf(each) === subject);
    return role && this.locks.get(role);
  }

  protected hintAll(): void {
    for (const lock of this.locks.values()) lock.hint();
  }

  protected async stopLocks(): Promise<void> {
    await Promise.all([...this.locks.values()].map((lock) => lock.stop()));
  }
}
