/** Users with a name and a password, for the dashboard. */

import type { Permission } from "../core/access/permissions.ts";
import { changed, removed } from "../core/access/credential.ts";
import type { Credential } from "../core/access/credential.ts";
import { BatonError } from "../core/errors.ts";
import type { Passwords } from "./passwords.ts";
import { passwordWeakness } from "./passwords.ts";
import type { CredentialServiceOptions } from "./token-service.ts";
import { newId } from "./token-service.ts";

export interface UserRequest {
  readonly name: string;
  readonly password: string;
  readonly permission: Permission;
  readonly by: string;
}

export class UserService {
  readonly #o: CredentialServiceOptions & { readonly passwords: Passwords };

  constructor(options: CredentialServiceOptions & { readonly passwords: Passwords }) {
    this.#o = options;
  }

  /** Rejects with NAME_IN_USE, or BAD_REQUEST for a weak password. */
  async add({ name, password, permission, by }: UserRequest): Promise<Credential> {
    const { credentials, passwords, node, clock, random } = this.#o;
    checkPassword(password, name);
    if ((await credentials.fresh()).user(name)) throw taken(name);
    const user: Credential = {
      id: newId(random),
      kind: "user",
      name,
      permission,
      secret: await passwords.hash(password),
      owner: null,
      createdAt: Math.floor(clock.now()),
      createdBy: by,
      expiresAt: null,
      lastUsedAt: null,
      removedAt: null,
      version: 1,
      node,
    };
    if (!(await credentials.put([user], "free_name"))) throw taken(name);
    return user;
  }

  async list(): Promise<readonly Credential[]> {
    const cache = await this.#o.credentials.fresh();
    const names = new Set(cache.list("user").map(({ name }) => name));
    return [...names].sort().map((name) => cache.user(name)!);
  }

  /** Ends the sessions of that user. Null when there is no such user. */
  async setPassword(name: string, password: string): Promise<Credential | null> {
    const { credentials, passwords, node } = this.#o;
    checkPassword(password, name);
    const user = (await credentials.fresh()).user(name);
    if (!user) return null;
    const next = changed(user, node, { secret: await passwords.hash(password) });
    const [kept] = (await credentials.put([next])) ?? [];
    if (kept?.removedAt !== null) return null;
    if (kept.secret !== next.secret) {
      throw new BatonError("NAME_IN_USE", `another change of ${name} was made at the same time; try again`);
    }
    return kept;
  }

  /** Ends the sessions of that user. Null when there is no such user. */
  async remove(name: string): Promise<Credential | null> {
    const { credentials, node, clock } = this.#o;
    const cache = await credentials.fresh();
    // All of them, where two nodes that could not reach each other have both made one.
    const users = cache.list("user").filter((user) => user.name === name);
    if (users.length === 0) return null;
    await credentials.put(users.map((user) => removed(user, node, clock.now())));
    return users[0]!;
  }
}

function checkPassword(password: string, user: string): void {
  const why = passwordWeakness(password, user);
  if (why !== null) {
    throw new BatonError("BAD_REQUEST", `the password ${why}; choose another one`, { field: "password" });
  }
}

function taken(name: string): BatonError {
  return new BatonError("NAME_IN_USE", `there is a user ${name} already; choose another name`, {
    field: "name",
  });
}
