/** Tokens: created once, shown once, revoked permanently. */

import type { Permission } from "../core/access/permissions.ts";
import { changed, removed } from "../core/access/credential.ts";
import type { Credential } from "../core/access/credential.ts";
import type { Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import type { Credentials } from "./credentials.ts";
import { digestOf, newToken } from "./token-format.ts";

export interface CredentialServiceOptions {
  readonly credentials: Credentials;
  /** This node, as the one that makes changes. */
  readonly node: string;
  readonly clock: Clock;
  readonly random: Random;
}

export interface TokenRequest {
  readonly name: string;
  readonly permission: Permission;
  /** Null: never. */
  readonly expiresInMs: number | null;
  /** Who asks for it. */
  readonly by: string;
}

export class TokenService {
  readonly #o: CredentialServiceOptions;

  constructor(options: CredentialServiceOptions) {
    this.#o = options;
  }

  /** Only this answer contains the text. */
  async create(request: TokenRequest): Promise<{ readonly text: string; readonly token: Credential }> {
    const text = newToken();
    const token = tokenOf(text, request, this.#o);
    await this.#o.credentials.put([token]);
    return { text, token };
  }

  /**
   * Takes a text that another process has made for one purpose, in the place of those that served it before. Called again, it counts for
   * longer; one that was revoked stays so.
   */
  async adopt(text: string, request: TokenRequest): Promise<void> {
    const { credentials, node, clock } = this.#o;
    const made = { ...tokenOf(text, request, this.#o), id: heldId(text) };
    const cache = await credentials.fresh();
    const there = cache.get(made.id);
    const token = there ? changed(there, node, { expiresAt: made.expiresAt }) : made;
    if (there && there.removedAt !== null) return;
    const before = cache
      .list("token")
      .filter(
        ({ id, name, createdBy }) => id !== token.id && name === token.name && createdBy === request.by,
      );
    const over = before.map((each) => removed(each, node, clock.now()));
    await credentials.put([token, ...over]);
  }

  /** Ends one that was adopted. */
  async release(text: string): Promise<void> {
    await this.revoke(heldId(text));
  }

  /** Those that have expired too, until they are forgotten. */
  async list(): Promise<readonly Credential[]> {
    const tokens = (await this.#o.credentials.fresh()).list("token");
    return [...tokens].sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
  }

  /** Null when there is no such token, or it is revoked already. */
  async revoke(id: string): Promise<Credential | null> {
    const { credentials, node, clock } = this.#o;
    const token = (await credentials.fresh()).get(id);
    if (!token || token.kind !== "token" || token.removedAt !== null) return null;
    const [kept] = (await credentials.put([removed(token, node, clock.now())])) ?? [];
    return kept ?? null;
  }
}

function heldId(text: string): string {
  return `held-${digestOf(text)!.slice(0, 16)}`;
}

export function tokenOf(
  text: string,
  { name, permission, expiresInMs, by }: TokenRequest,
  { node, clock, random }: Pick<CredentialServiceOptions, "node" | "clock" | "random">,
): Credential {
  const now = Math.floor(clock.now());
  return {
    id: newId(random),
    kind: "token",
    name,
    permission,
    secret: digestOf(text),
    owner: null,
    createdAt: now,
    createdBy: by,
    expiresAt: expiresInMs === null ? null : now + expiresInMs,
    lastUsedAt: null,
    removedAt: null,
    version: 1,
    node,
  };
}

/** Short enough to be typed; 64 bits are plenty for what a cluster has. */
export function newId(random: Random): string {
  return random.uuid().replaceAll("-", "").slice(0, 8) + random.uuid().replaceAll("-", "").slice(0, 8);
}
