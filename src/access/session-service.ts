/** Sessions of users: the browser has a cookie and the store its hash, so that any node knows the session. */

import { removed, SESSION_MS_MAX } from "../core/access/credential.ts";
import type { Credential } from "../core/access/credential.ts";
import { ownerOf } from "./credential-cache.ts";
import type { Passwords } from "./passwords.ts";
import type { CredentialServiceOptions } from "./token-service.ts";
import { newId } from "./token-service.ts";
import { digestOf } from "./token-format.ts";
import { newSecret } from "../platform/random.ts";

export class SessionService {
  readonly #o: CredentialServiceOptions & { readonly passwords: Passwords };

  constructor(options: CredentialServiceOptions & { readonly passwords: Passwords }) {
    this.#o = options;
  }

  /** Null when name or password are wrong; which of the two takes as long to find out. */
  async login(
    name: string,
    password: string,
  ): Promise<{ readonly text: string; readonly user: Credential } | null> {
    const { credentials, passwords, node, clock, random } = this.#o;
    const user = (await credentials.fresh()).user(name);
    if (!(await passwords.matches(password, user?.secret ?? null)) || !user) return null;
    const text = newSecret();
    const now = Math.floor(clock.now());
    const session: Credential = {
      id: newId(random),
      kind: "session",
      name: user.name,
      permission: user.permission,
      secret: digestOf(text),
      owner: ownerOf(user),
      createdAt: now,
      createdBy: `user:${user.name}`,
      expiresAt: now + SESSION_MS_MAX,
      lastUsedAt: null,
      removedAt: null,
      version: 1,
      node,
    };
    await credentials.put([session]);
    credentials.used(user, now);
    return { text, user };
  }

  async logout(text: string): Promise<void> {
    const { credentials, node, clock } = this.#o;
    const known = credentials.cache.session(text, clock.now());
    if (known) await credentials.put([removed(known.credential, node, clock.now())]);
  }
}
