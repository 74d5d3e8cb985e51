/**
 * Tokens: created once, shown once, revoked permanently. Also the format of tokens and sessions and of their hashes: they
 * are made of 256 random bits, so a plain SHA-256 is enough.
 */

import type { Permission } from "../core/access/permissions.ts";
import { changed, removed, type Credential } from "../core/access/credential.ts";
import type { Platform } from "../platform/platform.ts";
import { type Random, newSecret } from "../platform/random.ts";
import type { Credentials } from "./credentials.ts";
import { hash, hkdfSync, timingSafeEqual } from "node:crypto";

/** Known at a glance, and by those who look for secrets in code that is about to be published. */
export const TOKEN_PREFIX = "baton_";
/** What is longer than any token of ours, or of a setting, is not even hashed. */
const TEXT_LENGTH_MAX = 512;

export function newToken(): string {
  return TOKEN_PREFIX + newSecret();
}

/** The same for all who have the secret, and of no use to find it. */
export function agreedToken(secret: string): string {
  return (
    TOKEN_PREFIX +
    Buffer.from(hkdfSync("sha256", secret, "", "baton first token 1", 32)).toString("base64url")
  );
}

/** Null for what cannot be a token: empty, too long, or with a space or a control character in it. */
export function digestOf(text: string): string | null {
  if (text.length > TEXT_LENGTH_MAX || !PRINTABLE.test(text)) return null;
  return hash("sha256", text, "base64url");
}

const PRINTABLE = /^[\x21-\x7e]+$/;

/** Takes as long for one that is nearly right as for any other. */
export function sameDigest(a: string, b: string): boolean {
  const [one, two] = [Buffer.from(a), Buffer.from(b)];
  return one.length === two.length && timingSafeEqual(one, two);
}

/** What makes credentials: this node is named in them as the one that made or changed them. */
export interface CredentialMaker extends Pick<Platform, "clock" | "random"> {
  readonly identity: { readonly name: string };
}

export interface TokenRequest {
  readonly name: string;
  readonly permission: Permission;
  readonly expiresInMs: number | null;
  readonly by: string;
}

export type TokenService = ReturnType<typeof tokenService>;

export function tokenService(maker: CredentialMaker, credentials: Credentials) {
  const { identity, clock } = maker;

  async function revoke(id: string): Promise<Credential | null> {
    const token = (await credentials.fresh()).get(id);
    if (!token || token.kind !== "token" || token.removedAt !== null) return null;
    const [kept] = (await credentials.put([removed(token, identity.name, clock.now())])) ?? [];
    return kept ?? null;
  }

  return {
    revoke,

    /** Only this answer contains the text. */
    async create(request: TokenRequest): Promise<{ readonly text: string; readonly token: Credential }> {
      const text = newToken();
      const token = tokenOf(maker, text, request);
      await credentials.put([token]);
      return { text, token };
    },

    /** Takes a text that another process made, in place of those before it. Again: it counts for longer, unless it was revoked. */
    async adopt(text: string, request: TokenRequest): Promise<void> {
      const made = { ...tokenOf(maker, text, request), id: heldId(text) };
      const cache = await credentials.fresh();
      const there = cache.get(made.id);
      const token = there ? changed(there, identity.name, { expiresAt: made.expiresAt }) : made;
      if (there && there.removedAt !== null) return;
      const before = cache
        .list("token")
        .filter(
          ({ id, name, createdBy }) => id !== token.id && name === token.name && createdBy === request.by,
        );
      const over = before.map((each) => removed(each, identity.name, clock.now()));
      await credentials.put([token, ...over]);
    },

    release: async (text: string): Promise<void> => void (await revoke(heldId(text))),

    async list(): Promise<readonly Credential[]> {
      const tokens = (await credentials.fresh()).list("token");
      return [...tokens].sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
    },
  };
}

function heldId(text: string): string {
  return `held-${digestOf(text)!.slice(0, 16)}`;
}

export function tokenOf(
  maker: CredentialMaker,
  text: string,
  { name, permission, expiresInMs, by }: TokenRequest,
): Credential {
  const secret = digestOf(text);
  return newCredential(maker, { kind: "token", name, permission, secret, createdBy: by }, expiresInMs);
}

export function newCredential(
  { clock, random, identity }: CredentialMaker,
  fields: Pick<Credential, "kind" | "name" | "permission" | "secret" | "createdBy">,
  expiresInMs: number | null = null,
  owner: string | null = null,
): Credential {
  const { createdBy, ...rest } = fields;
  const createdAt = Math.floor(clock.now());
  return {
    // Short enough to be typed; 64 bits are plenty for what a cluster has.
    id: uuidHead(random) + uuidHead(random),
    ...rest,
    owner,
    createdAt,
    createdBy,
    expiresAt: expiresInMs === null ? null : createdAt + expiresInMs,
    lastUsedAt: null,
    removedAt: null,
    version: 1,
    node: identity.name,
  };
}

function uuidHead(random: Random): string {
  return random.uuid().replaceAll("-", "").slice(0, 8);
}
