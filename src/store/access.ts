/**
 * Credentials in the store: tokens, users and sessions. Each carries the number (`revision`) of its last write, so that
 * a node can read cheaply what others have changed.
 *
 * Unlike in the rest of the store, instants come from the clocks of the nodes, because credentials are copied between
 * stores that share no clock. Every node may write, without a term: `merge` of core/access/credential.ts decides the
 * result, whatever the order of writes.
 */

import { type Credential, isSame, merge } from "../core/access/credential.ts";
import { each, query, type Script, type Scripts, sql } from "./script.ts";

export interface AccessStore {
  /** Credentials written after this revision (0 for all), including tombstones, and the newest revision. */
  changes(after: number): Promise<AccessChanges>;

  /**
   * Merges each credential with the stored one (`merge`) and stores the result; all of them or none. Returns what is
   * stored now, in the order given, or null if the condition did not hold and nothing was written.
   */
  put(credentials: readonly Credential[], only?: PutCondition): Promise<readonly Credential[] | null>;

  /** Removes credentials and leaves no tombstone. Only for those that `isForgotten`. */
  forget(ids: readonly string[]): Promise<void>;
}

export interface AccessChanges {
  readonly revision: number;
  readonly credentials: readonly Credential[];
}

/**
 * `first_admin`: only if no credential, not even a tombstone, has the permission `admin`. `free_name`: only if no other
 * credential that is not removed has the same kind and name.
 */
export type PutCondition = "first_admin" | "free_name";

const FIELDS = [
  "id",
  "kind",
  "name",
  "permission",
  "secret",
  "owner",
  "createdAt",
  "createdBy",
  "expiresAt",
  "lastUsedAt",
  "removedAt",
  "version",
  "node",
] as const satisfies readonly (keyof Credential)[];
const columnOf = (field: string): string =>
  field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const COLUMNS = FIELDS.map((field) => `c.${columnOf(field)} AS "${field}"`).join(", ");

/** One statement, so that the revision and the rows belong to the same snapshot. */
const CHANGES = sql(
  "credential-changes",
  `SELECT r.n AS revision, ${COLUMNS} FROM baton.credential_revision r
   LEFT JOIN baton.credential c ON c.revision > $1::bigint ORDER BY c.revision, c.id`,
);
/**
 * A writer locks this row until it commits. So writers run one after the other, revisions become visible in order, and
 * a condition still holds when the write is made.
 */
const LOCK = sql("credential-lock", "SELECT n FROM baton.credential_revision FOR UPDATE");
const RAISE = sql("credential-raise", "UPDATE baton.credential_revision SET n = n + 1 RETURNING n");
const GET = sql("credential-get", `SELECT ${COLUMNS} FROM baton.credential c WHERE c.id = $1`);
const ADMIN = sql(
  "credential-admin",
  "SELECT 1 AS one FROM baton.credential WHERE permission = 'admin' LIMIT 1",
);
const TAKEN = sql(
  "credential-taken",
  "SELECT 1 AS one FROM baton.credential WHERE kind = $1 AND name = $2 AND removed_at IS NULL AND id <> $3 LIMIT 1",
);
const PUT = sql(
  "credential-put",
  `INSERT INTO baton.credential (revision, ${FIELDS.map(columnOf).join(", ")})
   VALUES ($1, ${FIELDS.map((_, at) => `$${at + 2}`).join(", ")})
   ON CONFLICT (id) DO UPDATE SET revision = excluded.revision,
     ${FIELDS.slice(1)
       .map((field) => `${columnOf(field)} = excluded.${columnOf(field)}`)
       .join(", ")}`,
);
const FORGET = sql("credential-forget", "DELETE FROM baton.credential WHERE id = $1");

type ChangeRow = { readonly revision: number } & (Credential | Record<keyof Credential, null>);

export function accessStore(scripts: Scripts): AccessStore {
  return {
    changes: (after) =>
      scripts.read(function* () {
        const rows = yield* query<ChangeRow>(CHANGES, after);
        const credentials = rows.map(({ revision: _revision, ...credential }) => credential as Credential);
        return { revision: rows[0]?.revision ?? 0, credentials: credentials.filter(({ id }) => id !== null) };
      }),
    put: (credentials, only) => scripts.write(() => put(credentials, only)),
    forget: (ids) =>
      scripts.write(() =>
        each(
          FORGET,
          ids.toSorted().map((id) => [id]),
        ),
      ),
  };
}

function* put(credentials: readonly Credential[], only?: PutCondition): Script<readonly Credential[] | null> {
  yield* query(LOCK);
  if (only === "first_admin" && (yield* query(ADMIN)).length > 0) return null;
  if (only === "free_name") {
    for (const { kind, name, id } of credentials) {
      if ((yield* query(TAKEN, kind, name, id)).length > 0) return null;
    }
  }
  const kept: Credential[] = [];
  let revision: number | null = null;
  for (const given of credentials) {
    const [row] = yield* query<Credential>(GET, given.id);
    const credential = row ? merge(row, given) : given;
    kept.push(credential);
    if (row && isSame(row, credential)) continue;
    revision ??= (yield* query<{ n: number }>(RAISE))[0]!.n;
    yield* query(PUT, revision, ...FIELDS.map((field) => credential[field]));
  }
  return kept;
}
