/** All credentials that this node knows, in memory, so that a request needs no query. */

import type { Principal } from "../core/access/permissions.ts";
import { isAlive, isForgotten, merge } from "../core/access/credential.ts";
import type { Credential, CredentialKind } from "../core/access/credential.ts";
import { digestOf, sameDigest } from "./token-service.ts";

export interface Known {
  readonly principal: Principal;
  readonly credential: Credential;
}

export class CredentialCache {
  readonly #all = new Map<string, Credential>();
  readonly #byDigest = new Map<string, Known>();

  get hasAdmin(): boolean {
    return [...this.#all.values()].some(({ permission }) => permission === "admin");
  }

  take(credentials: readonly Credential[]): void {
    for (const given of credentials) {
      const there = this.#all.get(given.id);
      const kept = there ? merge(there, given) : given;
      if (there?.secret) this.#byDigest.delete(there.secret);
      this.#all.set(kept.id, kept);
      if (kept.kind !== "user" && kept.secret !== null)
        this.#byDigest.set(kept.secret, { credential: kept, principal: principalOf(kept) });
    }
  }

  drop(ids: readonly string[]): void {
    for (const id of ids) {
      const there = this.#all.get(id);
      if (there?.secret) this.#byDigest.delete(there.secret);
      this.#all.delete(id);
    }
  }

  get(id: string): Credential | undefined {
    return this.#all.get(id);
  }

  all(): IterableIterator<Credential> {
    return this.#all.values();
  }

  list(kind: CredentialKind): readonly Credential[] {
    return [...this.#all.values()].filter((each) => each.kind === kind && each.removedAt === null);
  }

  forgotten(now: number): readonly string[] {
    return [...this.#all.values()].filter((each) => isForgotten(each, now)).map(({ id }) => id);
  }

  token(text: string, now: number): Known | null {
    return this.#find("token", text, now);
  }

  /** With the permission that its user has now; null once that has another password, or is gone. */
  session(text: string, now: number): Known | null {
    const found = this.#find("session", text, now);
    if (!found) return null;
    const { owner } = found.credential;
    const user = owner === null ? undefined : this.#all.get(owner.split(" ", 1)[0]!);
    if (!user || user.kind !== "user" || !isAlive(user, now) || ownerOf(user) !== owner) return null;
    return { credential: found.credential, principal: principalOf(user) };
  }

  /** Two nodes that could not reach each other may both have made one: the older one counts, everywhere. */
  user(name: string): Credential | null {
    const found = this.list("user").filter((user) => user.name === name);
    found.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
    return found[0] ?? null;
  }

  #find(kind: CredentialKind, text: string, now: number): Known | null {
    const digest = digestOf(text);
    const known = digest === null ? undefined : this.#byDigest.get(digest);
    if (!known || known.credential.kind !== kind || !isAlive(known.credential, now)) return null;
    return sameDigest(digest!, known.credential.secret!) ? known : null;
  }
}

/** What a session says of its user: the id, and a mark that another password does not have. */
export function ownerOf({ id, secret }: Credential): string {
  return `${id} ${digestOf(secret ?? "-")!.slice(0, 16)}`;
}

function principalOf({ kind, name, permission, id }: Credential): Principal {
  return { kind: kind === "token" ? "token" : "user", name, permission, id };
}
