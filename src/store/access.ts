/**
 * Credentials in the store: tokens, users and sessions. Each carries the number (`revision`) of its last write, so that
 * a node can read cheaply what others have changed.
 *
 * Unlike in the rest of the store, instants come from the clocks of the nodes, because credentials are copied between
 * stores that share no clock. Every node may write, without a term: `merge` of core/access/credential.ts decides the
 * result, whatever the order of writes.
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
