/**
 * Credentials in PostgreSQL: tokens, users and sessions. Writers lock the row of the revision until they commit, so
 * that revisions become visible in order.
 */

import { type Credential, isSame, merge } from "../../core/access/credential.ts";
import { type Queryable, read, write } from "../../platform/drivers/postgres/postgres.ts";
import { texts } from "../../platform/drivers/postgres/arrays.ts";
import type { AccessChanges, AccessStore, PutCondition } from "../access.ts";
import type { StoreCache } from "./jobs/store-cache.ts";

const COLUMNS = `c.id, c.kind, c.name, c.permission, c.secret, c.owner, c.created_at AS "createdAt", c.created_by AS "createdBy",
   c.expires_at AS "expiresAt", c.last_used_at AS "lastUsedAt", c.removed_at AS "removedAt", c.version, c.node`;

/** One statement, so that the number and the rows are of the same instant. */
const CHANGES = read(
  "credential-changes",
  `SELECT r.n AS revision, ${COLUMNS} FROM baton.credential_revision r LEFT JOIN baton.credential c ON c.revision > $1::bigint`,
);
/**
 * Whoever writes holds this row until its commit: writers come one after the other, so that revisions become visible in their
 * order, and what a condition found is still so when it is acted on.
 */
const LOCK = write("credential-lock", "SELECT n FROM baton.credential_revision FOR UPDATE");
const RAISE = write("credential-raise", "UPDATE baton.credential_revision SET n = n + 1 RETURNING n");
const THERE = write(
  "credential-there",
  `SELECT ${COLUMNS} FROM baton.credential c WHERE c.id = ANY ($1::text[])`,
);
const ADMIN = write("credential-admin", "SELECT FROM baton.credential WHERE permission = 'admin' LIMIT 1");
const TAKEN = write(
  "credential-taken",
  `SELECT FROM unnest($1::text[], $2::text[], $3::text[]) AS g (id, kind, name)
   WHERE EXISTS (SELECT FROM baton.credential c
     WHERE c.kind = g.kind AND c.name = g.name AND c.removed_at IS NULL AND c.id <> g.id)`,
);
const PUT = write(
  "credential-put",
  `INSERT INTO baton.credential (id, kind, name, permission, secret, owner, created_at, created_by, expires_at, last_used_at,
     removed_at, version, node, revision)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
   ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, name = excluded.name, permission = excluded.permission,
     secret = excluded.secret, owner = excluded.owner, created_at = excluded.created_at, created_by = excluded.created_by,
     expires_at = excluded.expires_at, last_used_at = excluded.last_used_at, removed_at = excluded.removed_at,
     version = excluded.version, node = excluded.node, revision = excluded.revision`,
);
const FORGET = write("credential-forget", "DELETE FROM baton.credential WHERE id = ANY ($1::text[])");

type ChangeRow = { readonly revision: number } & (Credential | Record<keyof Credential, null>);

export class PostgresAccess implements AccessStore {
  readonly #ledger: StoreCache;

  constructor({ ledger }: { readonly ledger: StoreCache }) {
    this.#ledger = ledger;
  }

  async changes(after: number): Promise<AccessChanges> {
    const rows = await this.#ledger.db.query<ChangeRow>(CHANGES, [after]);
    const credentials = rows.flatMap((row) => (row.id === null ? [] : [credentialOf(row as Credential)]));
    return { revision: rows[0]?.revision ?? 0, credentials };
  }

  put(credentials: readonly Credential[], only?: PutCondition): Promise<readonly Credential[] | null> {
    return this.#ledger.db.transaction(async (tx) => {
      await tx.query(LOCK);
      if (!(await holds(tx, credentials, only))) return null;
      const ids = texts(credentials.map(({ id }) => id));
      const there = new Map((await tx.query<Credential>(THERE, [ids])).map((each) => [each.id, each]));
      const kept: Credential[] = [];
      let revision: number | null = null;
      for (const given of credentials) {
        const known = there.get(given.id);
        const credential = known ? merge(known, given) : given;
        kept.push(credential);
        if (known && isSame(known, credential)) continue;
        there.set(given.id, credential);
        revision ??= (await tx.query<{ n: number }>(RAISE))[0]!.n;
        await tx.query(PUT, valuesOf(credential, revision));
      }
      return kept;
    });
  }

  async forget(ids: readonly string[]): Promise<void> {
    await this.#ledger.db.query(FORGET, [texts(ids)]);
  }
}

async function holds(
  tx: Queryable,
  credentials: readonly Credential[],
  only: PutCondition | undefined,
): Promise<boolean> {
  if (only === "first_admin") return (await tx.query(ADMIN)).length === 0;
  if (only !== "free_name") return true;
  const values = (["id", "kind", "name"] as const).map((field) =>
    texts(credentials.map((each) => each[field])),
  );
  return (await tx.query(TAKEN, values)).length === 0;
}

/** Without the number beside it. */
function credentialOf(row: Credential): Credential {
  const { id, kind, name, permission, secret, owner, createdAt, createdBy, expiresAt } = row;
  const { lastUsedAt, removedAt, version, node } = row;
  const about = { id, kind, name, permission, secret, owner, createdAt, createdBy, expiresAt };
  return { ...about, lastUsedAt, removedAt, version, node };
}

function valuesOf(each: Credential, revision: number): unknown[] {
  return [...Object.values(credentialOf(each)), revision];
}
