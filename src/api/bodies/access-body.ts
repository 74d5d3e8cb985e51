/** The response bodies of tokens and users. They never contain a secret. */

import { z } from "zod";
import { passwordRule } from "../../access/passwords.ts";
import { ACCESS_NAME, PERMISSIONS } from "../../core/access/permissions.ts";
import type { Principal } from "../../core/access/permissions.ts";
import { principalText } from "../../core/access/permissions.ts";
import type { Credential } from "../../core/access/credential.ts";
import { isAlive } from "../../core/access/credential.ts";
import { BatonError } from "../../core/errors.ts";
import { isoOf, toWire } from "../schema/to-wire.ts";
import type { NodeServices } from "../node-services.ts";

export const PermissionName = z
  .enum(PERMISSIONS)
  .meta({ description: `one of ${PERMISSIONS.join(", ")}; each includes those before it` });

export const AccessName = z.string().regex(ACCESS_NAME).meta({
  description: "a name of 1 to 64 letters, digits or . _ @ - that begins and ends with a letter or a digit",
});

export const Password = z.string().max(1_024).meta({ description: passwordRule });

export const SessionBody = z.object({
  principal: z.string().meta({ description: "who you are here, as `user:ann`" }),
  permission: PermissionName,
  open: z
    .boolean()
    .meta({ description: "nobody is asked anything: the node listens to its own machine only" }),
});

export function sessionBody(principal: Principal, open: boolean): z.input<typeof SessionBody> {
  return { principal: principalText(principal), permission: principal.permission, open };
}

export const TokenBody = z.object({
  id: z.string(),
  name: z.string(),
  permission: PermissionName,
  created_at: z.string(),
  created_by: z.string(),
  last_used_at: z.string().nullable().meta({ description: "to within ten minutes" }),
  expires_at: z.string().nullable(),
  expired: z.boolean(),
});
export type TokenBody = z.output<typeof TokenBody>;

const lastUsed = {
  // Uses are noted in steps, whose beginning may lie before it was made.
  last_used_at: ({ lastUsedAt, createdAt }: Credential) =>
    lastUsedAt === null ? null : isoOf(Math.max(lastUsedAt, createdAt)),
};

const tokenWire = toWire(TokenBody.omit({ expired: true }), lastUsed);

export function tokenBody(token: Credential, now: number): TokenBody {
  return { ...tokenWire(token), expired: !isAlive(token, now) };
}

export const UserBody = z.object({
  name: z.string(),
  permission: PermissionName,
  created_at: z.string(),
  created_by: z.string(),
  last_used_at: z.string().nullable().meta({ description: "the last login, to within ten minutes" }),
});
export type UserBody = z.output<typeof UserBody>;

export const userBody = toWire(UserBody, lastUsed);

export function accessOf({ access }: NodeServices): NonNullable<NodeServices["access"]> {
  if (access) return access;
  throw new BatonError("NOT_FOUND", "this node keeps no credentials");
}
