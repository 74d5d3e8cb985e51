/** Operations on tokens: create, list and revoke. They need the permission `admin`. */

import { z } from "zod";
import { principalText } from "../../../core/access/permissions.ts";
import { BatonError } from "../../../core/errors.ts";
import { AccessName, PermissionName, TokenBody, accessOf, tokenBody } from "../../bodies/access-body.ts";
import { answer, operation } from "../../operation.ts";

/** A hundred years: longer is a mistake. */
const EXPIRES_MS_MAX = 100 * 365 * 86_400_000;

export const listTokens = operation("GET /tokens", {
  permission: "admin",
  name: "list_tokens",
  summary: "All tokens, without what could be used of them",
  replies: { 200: z.object({ tokens: z.array(TokenBody) }) },
  async handler(services) {
    const tokens = await accessOf(services).tokens.list();
    return answer(200, { tokens: tokens.map((token) => tokenBody(token, services.clock.now())) });
  },
});

export const createToken = operation("POST /tokens", {
  permission: "admin",
  name: "create_token",
  summary: "Make a token; its text is told in this answer and never again",
  body: z.strictObject({
    name: AccessName,
    permission: PermissionName,
    expires_in_ms: z
      .int()
      .min(1_000)
      .max(EXPIRES_MS_MAX)
      .nullable()
      .optional()
      .meta({ description: "a number of milliseconds from 1000 on; without it the token does not expire" }),
  }),
  audits: ({ body: { name, permission, expires_in_ms = null } }) => ({ name, permission, expires_in_ms }),
  replies: {
    201: TokenBody.extend({ token: z.string().meta({ description: "keep it: it is not kept here" }) }),
  },
  async handler(services, { body, principal }) {
    const { text, token } = await accessOf(services).tokens.create({
      name: body.name,
      permission: body.permission,
      expiresInMs: body.expires_in_ms ?? null,
      by: principalText(principal!),
    });
    const created = { ...tokenBody(token, services.clock.now()), token: text };
    return answer(201, created, { "cache-control": "no-store" });
  },
});

export const revokeToken = operation("DELETE /tokens/{id}", {
  permission: "admin",
  name: "revoke_token",
  summary: "Revoke a token: within seconds no node takes it any more",
  params: z.strictObject({ id: z.string().min(1).max(64) }),
  replies: { 200: z.object({ id: z.string(), name: z.string(), revoked: z.literal(true) }) },
  async handler(services, { params }) {
    const revoked = await accessOf(services).tokens.revoke(params.id);
    if (revoked) return answer(200, { id: revoked.id, name: revoked.name, revoked: true as const });
    throw new BatonError(
      "NOT_FOUND",
      `there is no token with the id ${params.id}; baton token list shows them`,
    );
  },
});
