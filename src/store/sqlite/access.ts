/** Credentials in SQLite: tokens, users and sessions, each with the revision of its last change. */

import { type Credential, isSame, merge } from "../../core/access/credential.ts";
import type { AccessChanges, AccessStore, PutCondition } from "../access.ts";
import type { StoreCache } from "./jobs/store-cache.ts";

export class SqliteAccess implements AccessStore {
  readonly #ledger: StoreCache;
  readonly #sql;

  constructor({ ledger }: { readonly ledger: StoreCache }) {
    this.#ledger = ledger;
    const { file } = ledger;
    this.#sql = {
      revision: file.prepare("SELECT n FROM credential_revision"),
      raise: file.prepare("UPDATE credential_revision SET n = n + 1"),
      changes: file.prepare("SELECT * FROM credential WHERE revision > ? ORDER BY revision, id"),
      get: file.prepare("SELECT * FROM credential WHERE id = ?"),
      admin: file.prepare("SELECT 1 FROM credential WHERE permission = 'admin' LIMIT 1"),
      taken: file.prepare(
        "SELECT 1 FROM credential WHERE kind = ? AND name = ? AND removed_at IS NULL AND id <> ? LIMIT 1",
      ),
      put: file.prepare(
        `INSERT OR REPLACE INTO credential (id, kind, name, permission, secret, owner, created_at, created_by, expires_at,
           last_used_at, removed_at, version, node, revision)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT n FROM credential_revision))`,
      ),
      forget: file.prepare("DELETE FROM credential WHERE id = ?"),
    };
  }

  async changes(after: number): Promise<AccessChanges> {
    return this.#ledger.file.read(() => ({
      revision: this.#sql.revision.get()!["n"] as number,
      credentials: this.#sql.changes.all(after).map(credentialOf),
    }));
  }

  put(credentials: readonly Credential[], only?: PutCondition): Promise<readonly Credential[] | null> {
    return this.#ledger.file.write(() => {
      const sql = this.#sql;
      if (only === "first_admin" && sql.admin.get()) return null;
      if (only === "free_name" && credentials.some((each) => sql.taken.get(each.kind, each.name, each.id)))
        return null;
      let raised = false;
      return credentials.map((given) => {
        const row = sql.get.get(given.id);
        const there = row && credentialOf(row);
        const kept = there ? merge(there, given) : given;
        if (there && isSame(there, kept)) return there;
        if (!raised) sql.raise.run();
        raised = true;
        sql.put.run(
          kept.id,
          kept.kind,
          kept.name,
          kept.permission,
          kept.secret,
          kept.owner,
          kept.createdAt,
          kept.createdBy,
          kept.expiresAt,
          kept.lastUsedAt,
          kept.removedAt,
          kept.version,
          kept.node,
        );
        return kept;
      });
    });
  }

  forget(ids: readonly string[]): Promise<void> {
    return this.#ledger.file.write(() => {
      for (const id of ids) this.#sql.forget.run(id);
    });
  }
}

function credentialOf(row: Readonly<Record<string, unknown>>): Credential {
  return {
    id: row["id"] as string,
    kind: row["kind"] as Credential["kind"],
    name: row["name"] as string,
    permission: row["permission"] as Credential["permission"],
    secret: row["secret"] as string | null,
    owner: row["owner"] as string | null,
    createdAt: row["created_at"] as number,
    createdBy: row["created_by"] as string,
    expiresAt: row["expires_at"] as number | null,
    lastUsedAt: row["last_used_at"] as number | null,
    removedAt: row["removed_at"] as number | null,
    version: row["version"] as number,
    node: row["node"] as string,
  };
}
