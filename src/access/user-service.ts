/** Users with a name and a password, for the dashboard, and their sessions. */

import type { Permission } from "../core/access/permissions.ts";
import { changed, removed, type Credential, SESSION_MS_MAX } from "../core/access/credential.ts";
import { BatonError } from "../core/errors.ts";
import { type Passwords, passwordWeakness } from "./passwords.ts";
import type { Credentials } from "./credentials.ts";
import { newCredential, type CredentialMaker, digestOf } from "./token-service.ts";
import { newSecret } from "../platform/random.ts";
import { ownerOf } from "./credential-cache.ts";

export interface UserRequest {
  readonly name: string;
  readonly password: string;
  readonly permission: Permission;
  readonly by: string;
}

export type UserService = ReturnType<typeof userService>;

export function userService(maker: CredentialMaker, credentials: Credentials, passwords: Passwords) {
  return {
    async add({ name, password, permission, by }: UserRequest): Promise<Credential> {
      checkPassword(password, name);
      if ((await credentials.fresh()).user(name)) throw taken(name);
      const secret = await passwords.hash(password);
      const user = newCredential(maker, { kind: "user", name, permission, secret, createdBy: by });
      if (!(await credentials.put([user], "free_name"))) throw taken(name);
      return user;
    },

    async list(): Promise<readonly Credential[]> {
      const cache = await credentials.fresh();
      const names = new Set(cache.list("user").map(({ name }) => name));
      return [...names].sort().map((name) => cache.user(name)!);
    },

    /** Ends the sessions of that user. Null when there is no such user. */
    async setPassword(name: string, password: string): Promise<Credential | null> {
      checkPassword(password, name);
      const user = (await credentials.fresh()).user(name);
      if (!user) return null;
      const secret = await passwords.hash(password);
      const next = changed(user, maker.identity.name, { secret });
      const [kept] = (await credentials.put([next])) ?? [];
      if (kept?.removedAt !== null) return null;
      if (kept.secret !== next.secret) {
        throw new BatonError("NAME_IN_USE", `another change of ${name} was made at the same time; try again`);
      }
      return kept;
    },

    async remove(name: string): Promise<Credential | null> {
      const { identity, clock } = maker;
      const cache = await credentials.fresh();
      // All of them, where two nodes that could not reach each other have both made one.
      const users = cache.list("user").filter((user) => user.name === name);
      if (users.length === 0) return null;
      await credentials.put(users.map((user) => removed(user, identity.name, clock.now())));
      return users[0]!;
    },

    /** Null when name or password are wrong; which of the two takes as long to find out. */
    async login(
      name: string,
      password: string,
    ): Promise<{ readonly text: string; readonly user: Credential } | null> {
      const user = (await credentials.fresh()).user(name);
      if (!(await passwords.matches(password, user?.secret ?? null)) || !user) return null;
      const text = newSecret();
      const { permission } = user;
      const session = newCredential(
        maker,
        { kind: "session", name, permission, secret: digestOf(text), createdBy: `user:${name}` },
        SESSION_MS_MAX,
        ownerOf(user),
      );
      await credentials.put([session]);
      credentials.used(user, session.createdAt);
      return { text, user };
    },

    async logout(text: string): Promise<void> {
      const { clock, identity } = maker;
      const known = credentials.cache.session(text, clock.now());
      if (known) await credentials.put([removed(known.credential, identity.name, clock.now())]);
    },
  };
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
