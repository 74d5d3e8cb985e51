import { type Credential, isSame, merge } from "../../core/access/credential.ts";
import type { AccessChanges, AccessStore, PutCondition } from "../access.ts";
import type { Turn } from "./turn.ts";

interface Kept {
  readonly credential: Credential;
  readonly revision: number;
}

export class MemoryAccess implements AccessStore {
  readonly #turn: Turn;
  readonly #kept = new Map<string, Kept>();
  #revision = 0;

  constructor(options: { readonly turn: Turn }) {
    this.#turn = options.turn;
  }

  changes(after: number): Promise<AccessChanges> {
    return this.#turn(() => {
      const found = [...this.#kept.values()].filter(({ revision }) => revision > after);
      return { revision: this.#revision, credentials: found.map(({ credential }) => credential) };
    });
  }

  put(credentials: readonly Credential[], only?: PutCondition): Promise<readonly Credential[] | null> {
    return this.#turn(() => {
      if (only === "first_admin" && this.#hasAdmin()) return null;
      if (only === "free_name" && credentials.some((each) => this.#isTaken(each))) return null;
      const revision = this.#revision + 1;
      return credentials.map((given) => {
        const there = this.#kept.get(given.id)?.credential;
        const credential = there ? merge(there, given) : given;
        if (there && isSame(there, credential)) return there;
        this.#revision = revision;
        this.#kept.set(given.id, { credential, revision });
        return credential;
      });
    });
  }

  forget(ids: readonly string[]): Promise<void> {
    return this.#turn(() => {
      for (const id of ids) this.#kept.delete(id);
    });
  }

  #hasAdmin(): boolean {
    return [...this.#kept.values()].some(({ credential }) => credential.permission === "admin");
  }

  #isTaken({ id, kind, name }: Credential): boolean {
    for (const { credential: each } of this.#kept.values()) {
      if (each.removedAt === null && each.kind === kind && each.name === name && each.id !== id) return true;
    }
    return false;
  }
}
