/** The messages between nodes about credentials. The routes that use them are in peer-routes.ts. */

import { z } from "zod";
import { CREDENTIAL_KINDS } from "../../core/access/credential.ts";
import { ACCESS_NAME, PERMISSIONS } from "../../core/access/permissions.ts";

const text = z.string().min(1).max(256);
const instant = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

const credential = z.object({
  id: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  kind: z.enum(CREDENTIAL_KINDS),
  name: z.string().regex(ACCESS_NAME),
  permission: z.enum(PERMISSIONS),
  secret: text.nullable(),
  owner: text.nullable(),
  createdAt: instant,
  createdBy: text,
  expiresAt: instant.nullable(),
  lastUsedAt: instant.nullable(),
  removedAt: instant.nullable(),
  version: z.number().int().min(1).max(Number.MAX_SAFE_INTEGER),
  node: text,
});

/** So many in one message: a page is far below the largest body that a node takes. */
export const CREDENTIALS_MAX = 500;

export const credentialPage = z.object({
  credentials: z.array(credential).max(CREDENTIALS_MAX),
  /** Behind which id it goes on; null at the end. */
  next: text.nullable(),
});
export type CredentialPage = z.output<typeof credentialPage>;
