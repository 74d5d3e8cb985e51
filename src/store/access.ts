/**
 * The part of the store port that keeps credentials: tokens, users and sessions, each with a number (`revision`) under which it was
 * written last, so that a node finds out cheaply what others have changed.
 *
 * Unlike elsewhere in the port, instants are those of the nodes: a credential is copied between stores that have no clock in common.
 * Anybody may write, without a term: `merge` of core/access/credential.ts decides what stays, in any order of writes.
 */

import type { Credential } from "../core/access/credential.ts";

export interface AccessStore {
  /** Those that were written behind this revision (0: all of them), tombstones too, and the newest revision. */
  changes(after: number): Promise<AccessChanges>;

  /**
   * Keeps what `merge` makes of each and what is there; all of them or nothing. Answers what is there now, in the order given, or
   * null when the condition did not hold and nothing was written.
   */
  put(credentials: readonly Credential[], only?: PutCondition): Promise<readonly Credential[] | null>;

  /** Removes them without a trace. Only for those that `isForgotten`. */
  forget(ids: readonly string[]): Promise<void>;
}

export interface AccessChanges {
  readonly revision: number;
  readonly credentials: readonly Credential[];
}

/**
 * `first_admin`: only where nothing has the permission `admin`, not even a tombstone. `free_name`: only if nothing else alive has the kind and name of any
 * of them.
 */
export type PutCondition = "first_admin" | "free_name";
