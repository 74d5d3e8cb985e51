/**
 * The record of a token, user or session, and the rule that merges two copies of it.
 *
 * Where each node has a store of its own, every node stores all credentials, and nodes send each other their changes,
 * in any order and any number of times. `merge` makes that safe: it is commutative, associative and idempotent. A
 * removed credential stays removed after every merge, because losing a revocation is worse than losing a change.
 *
 *   alive (version 1) --change--> alive (version 2) --remove--> tombstone
 *                                                                  '--> final: a credential that is created again has a new id
 */

import type { Permission } from "./permissions.ts";

export const CREDENTIAL_KINDS = ["token", "user", "session"] as const;
export type CredentialKind = (typeof CREDENTIAL_KINDS)[number];

export interface Credential {
  readonly id: string;
  readonly kind: CredentialKind;
  readonly name: string;
  readonly permission: Permission;
  /** SHA-256 of a token or a session, or the hash of a password with its parameters; null in a tombstone. */
  readonly secret: string | null;
  /** Of a session: the id of its user, and the mark of the password at that time. */
  readonly owner: string | null;
  readonly createdAt: number;
  /** Who made it, as `user:ann`. */
  readonly createdBy: string;
  readonly expiresAt: number | null;
  /** Coarse: it must not cost a write with every request. */
  readonly lastUsedAt: number | null;
  readonly removedAt: number | null;
  /** Raised by each change, but not by use. */
  readonly version: number;
  /** Where it was changed last. */
  readonly node: string;
}

export function merge(a: Credential, b: Credential): Credential {
  const kept = compare(a, b) >= 0 ? a : b;
  const lastUsedAt = latest(a.lastUsedAt, b.lastUsedAt);
  return kept.lastUsedAt === lastUsedAt ? kept : { ...kept, lastUsedAt };
}

function compare(a: Credential, b: Credential): number {
  return (
    Number(a.removedAt !== null) - Number(b.removedAt !== null) ||
    a.version - b.version ||
    order(a.node, b.node) ||
    // A node that was restored from a backup may give a version twice: any order will do, if it is the same everywhere.
    order(textOf(a), textOf(b))
  );
}

function order(a: string, b: string): number {
  return a === b ? 0 : a > b ? 1 : -1;
}

function textOf(each: Credential): string {
  const { kind, name, permission, secret, owner, createdAt, createdBy, expiresAt, removedAt } = each;
  return JSON.stringify([kind, name, permission, secret, owner, createdAt, createdBy, expiresAt, removedAt]);
}

function latest(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.max(a, b);
}

export function isSame(a: Credential, b: Credential): boolean {
  return compare(a, b) === 0 && a.lastUsedAt === b.lastUsedAt;
}

export function changed(each: Credential, node: string, fields: Partial<Credential>): Credential {
  return { ...each, ...fields, version: each.version + 1, node };
}

export function removed(each: Credential, node: string, now: number): Credential {
  return changed(each, node, { removedAt: now, secret: null });
}

// ---------------------------------------------------------------- time

/** Without a use for so long a session is over. */
export const SESSION_IDLE_MS = 12 * 3_600_000;
/** However often it is used: a stolen one ends with it. */
export const SESSION_MS_MAX = 7 * 24 * 3_600_000;
/** A smaller step costs more writes for each busy token. */
const USE_STEP_MS = 600_000;

export function endsAt({ kind, expiresAt, lastUsedAt, createdAt }: Credential): number | null {
  if (kind !== "session") return expiresAt;
  return Math.min(expiresAt ?? Infinity, Math.max(lastUsedAt ?? 0, createdAt) + SESSION_IDLE_MS);
}

export function isAlive(each: Credential, now: number): boolean {
  if (each.removedAt !== null || each.secret === null) return false;
  const end = endsAt(each);
  return end === null || now < end;
}

/** Long enough for people to see which token has expired, and for nodes that were away to learn of every removal. */
const EXPIRED_SHOWN_MS = 30 * 24 * 3_600_000;
const SESSION_SHOWN_MS = 24 * 3_600_000;

/**
 * Whether no node needs it any more. The tombstone of a credential that never expires stays for ever: a node that comes
 * back after a year may still have it alive.
 */
export function isForgotten(each: Credential, now: number): boolean {
  const end = endsAt(each);
  if (end === null) return false;
  return now >= end + (each.kind === "session" ? SESSION_SHOWN_MS : EXPIRED_SHOWN_MS);
}

export function useStep(now: number): number {
  return Math.floor(now / USE_STEP_MS) * USE_STEP_MS;
}
