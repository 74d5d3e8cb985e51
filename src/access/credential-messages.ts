/** Credentials in messages between nodes. Received credentials are validated field by field before they are stored. */

import { createHash } from "node:crypto";
import { z } from "zod";
import { ACCESS_NAME, PERMISSIONS } from "../core/access/permissions.ts";
import { CREDENTIAL_KINDS } from "../core/access/credential.ts";
import type { Credential } from "../core/access/credential.ts";

const Text = z.string().min(1).max(256);
const Instant = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

const CredentialWire = z.object({
  id: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  kind: z.enum(CREDENTIAL_KINDS),
  name: z.string().regex(ACCESS_NAME),
  permission: z.enum(PERMISSIONS),
  secret: Text.nullable(),
  owner: Text.nullable(),
  createdAt: Instant,
  createdBy: Text,
  expiresAt: Instant.nullable(),
  lastUsedAt: Instant.nullable(),
  removedAt: Instant.nullable(),
  version: z.number().int().min(1).max(Number.MAX_SAFE_INTEGER),
  node: Text,
});

/** So many in one message: a page is far below the largest body that a node takes. */
export const PAGE_MAX = 500;

const PageWire = z.object({
  credentials: z.array(CredentialWire).max(PAGE_MAX),
  /** Behind which id it goes on; null at the end. */
  next: Text.nullable(),
});
export type Page = z.output<typeof PageWire>;

/** Null for what no node of ours sends. */
export function readPage(text: string): Page | null {
  try {
    return PageWire.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

export function pageAfter(credentials: Iterable<Credential>, after: string): Page {
  const rest = sorted(credentials).filter(({ id }) => id > after);
  const page = rest.slice(0, PAGE_MAX);
  return { credentials: page, next: rest.length > page.length ? page.at(-1)!.id : null };
}

/** The same for the same credentials, whatever order they came in. */
export function digestOfAll(credentials: Iterable<Credential>): string {
  const sum = createHash("sha256");
  for (const each of sorted(credentials)) {
    const { id, version, node, removedAt, lastUsedAt } = each;
    sum.update(JSON.stringify([id, version, node, removedAt, lastUsedAt, each.secret]));
  }
  return sum.digest("base64url");
}

function sorted(credentials: Iterable<Credential>): Credential[] {
  return [...credentials].sort((a, b) => (a.id < b.id ? -1 : 1));
}
