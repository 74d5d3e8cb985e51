/** Sessions, tokens and users. No body contains a secret, but for the answer that makes a token. */

import { z } from "zod";
import { matching } from "../../bodies/fields.ts";
import { passwordRule } from "../../../access/passwords.ts";
import { isAlive, type Credential } from "../../../core/access/credential.ts";
import { ACCESS_NAME, PERMISSIONS, principalText, type Principal } from "../../../core/access/permissions.ts";
import { BatonError } from "../../../core/errors.ts";
import { EVERYWHERE, sessionCookie, sessionIn } from "../../bodies/session-cookie.ts";
import { answer, operation } from "../../operation.ts";
import { isoOf, toWire } from "../../schema/to-wire.ts";

const PermissionName = z
  .enum(PERMISSIONS)
  .describe(`one of ${PERMISSIONS.join(", ")}; each includes those before it`);

const AccessName = matching(
  ACCESS_NAME,
  "a name of 1 to 64 letters, digits or . _ @ - that begins and ends with a letter or a digit",
);

const Password = z.string().max(1_024).describe(passwordRule);

const MADE = {
  name: z.string(),
  permission: PermissionName,
  created_at: z.string(),
  created_by: z.string(),
};

const lastUsed = {
  // Uses are noted in steps, whose beginning may lie before it was made.
  last_used_at: ({ lastUsedAt, createdAt }: Credential) =>
    lastUsedAt === null ? null : isoOf(Math.max(lastUsedAt, createdAt)),
};

const SessionBody = z.object({
  principal: z.string().describe("who you are here, as `user:ann`"),
  permission: PermissionName,
  open: z
    .boolean()
    .describe(
      "there is nothing to sign in to or out of here: the node listens to its own machine only, or the application that it is mounted in knows its callers",
    ),
});

function sessionBody(principal: Principal, open: boolean): z.input<typeof SessionBody> {
  return { principal: principalText(principal), permission: principal.permission, open };
}

export const whoAmI = operation("GET /session", {
  summary: "Who you are here, and what you may do",
  replies: { 200: SessionBody },
  handler({ access }, { principal }) {
    return answer(200, sessionBody(principal!, access.open || principal!.kind === "application"));
  },
});

export const login = operation("POST /session", {
  summary: "Log in with a name and a password; the session comes as a cookie",
  permission: "public",
  login: true,
  body: z.strictObject({ user: AccessName, password: z.string().min(1).max(1_024) }),
  audits: ({ body }) => ({ user: body.user }),
  replies: { 200: SessionBody },
  async handler(services, { body, cookie = EVERYWHERE }) {
    const { users, open } = services.access;
    const made = await users.login(body.user, body.password);
    if (!made) throw new BatonError("UNAUTHENTICATED", "the name or the password is wrong");
    const { name, permission, id } = made.user;
    return answer(200, sessionBody({ kind: "user", name, permission, id }, open), {
      "set-cookie": sessionCookie(made.text, cookie),
      "cache-control": "no-store",
    });
  },
});

export const logout = operation("DELETE /session", {
  summary: "Log out: the session ends on every node",
  permission: "read",
  replies: { 200: z.object({ status: z.literal("ok") }) },
  async handler(services, { headers, cookie = EVERYWHERE }) {
    const text = typeof headers["cookie"] === "string" ? sessionIn(headers["cookie"]) : null;
    if (text !== null) await services.access.users.logout(text);
    return answer(200, { status: "ok" as const }, { "set-cookie": sessionCookie("", cookie) });
  },
});

export const TokenBody = z.object({
  id: z.string(),
  ...MADE,
  last_used_at: z.string().nullable().describe("to within ten minutes"),
  expires_at: z.string().nullable(),
  expired: z.boolean(),
});
export type TokenBody = z.output<typeof TokenBody>;

const tokenWire = toWire(TokenBody.omit({ expired: true }), lastUsed);

export function tokenBody(token: Credential, now: number): TokenBody {
  return { ...tokenWire(token), expired: !isAlive(token, now) };
}

const EXPIRES_MS_MAX = 100 * 365 * 86_400_000;

export const listTokens = operation("GET /tokens", {
  permission: "admin",
  summary: "All tokens, without what could be used of them",
  replies: { 200: z.object({ tokens: z.array(TokenBody) }) },
  async handler({ access, clock }) {
    const tokens = await access.tokens.list();
    return answer(200, { tokens: tokens.map((token) => tokenBody(token, clock.now())) });
  },
});

export const createToken = operation("POST /tokens", {
  permission: "admin",
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
      .describe("a number of milliseconds from 1000 on; without it the token does not expire"),
  }),
  audits: ({ body: { name, permission, expires_in_ms = null } }) => ({ name, permission, expires_in_ms }),
  replies: {
    201: TokenBody.extend({ token: z.string().describe("keep it: it is not kept here") }),
  },
  async handler(services, { body, principal }) {
    const { expires_in_ms: expiresInMs = null, ...fields } = body;
    const by = principalText(principal!);
    const { text, token } = await services.access.tokens.create({ ...fields, expiresInMs, by });
    const created = { ...tokenBody(token, services.clock.now()), token: text };
    return answer(201, created, { "cache-control": "no-store" });
  },
});

export const revokeToken = operation("DELETE /tokens/{id}", {
  permission: "admin",
  summary: "Revoke a token: within seconds no node takes it any more",
  params: z.strictObject({ id: z.string().min(1).max(64) }),
  replies: { 200: z.object({ id: z.string(), name: z.string(), revoked: z.literal(true) }) },
  async handler(services, { params }) {
    const revoked = await services.access.tokens.revoke(params.id);
    if (revoked) return answer(200, { id: revoked.id, name: revoked.name, revoked: true as const });
    const message = `there is no token with the id ${params.id}; baton token list shows them`;
    throw new BatonError("NOT_FOUND", message);
  },
});

export const UserBody = z.object({
  ...MADE,
  last_used_at: z.string().nullable().describe("the last login, to within ten minutes"),
});
export type UserBody = z.output<typeof UserBody>;

const userBody = toWire(UserBody, lastUsed);

const UserParams = z.strictObject({ name: AccessName });

export const listUsers = operation("GET /users", {
  permission: "admin",
  summary: "All users",
  replies: { 200: z.object({ users: z.array(UserBody) }) },
  handler: async (services) => answer(200, { users: (await services.access.users.list()).map(userBody) }),
});

export const addUser = operation("POST /users", {
  permission: "admin",
  summary: "Add a user",
  body: z.strictObject({ name: AccessName, password: Password, permission: PermissionName }),
  audits: ({ body: { name, permission } }) => ({ name, permission }),
  replies: { 201: UserBody },
  async handler(services, { body, principal }) {
    const user = await services.access.users.add({ ...body, by: principalText(principal!) });
    return answer(201, userBody(user));
  },
});

export const setPassword = operation("PUT /users/{name}/password", {
  permission: "admin",
  summary: "Give a user another password; their sessions end",
  params: UserParams,
  body: z.strictObject({ password: Password }),
  replies: { 200: UserBody },
  async handler(services, { params, body }) {
    const user = await services.access.users.setPassword(params.name, body.password);
    if (user) return answer(200, userBody(user));
    throw noSuchUser(params.name);
  },
});

export const removeUser = operation("DELETE /users/{name}", {
  permission: "admin",
  summary: "Remove a user; their sessions end",
  params: UserParams,
  replies: { 200: z.object({ name: z.string(), removed: z.literal(true) }) },
  async handler(services, { params }) {
    if (await services.access.users.remove(params.name))
      return answer(200, { name: params.name, removed: true as const });
    throw noSuchUser(params.name);
  },
});

function noSuchUser(name: string): BatonError {
  return new BatonError("NOT_FOUND", `there is no user ${name}; baton user list shows them`);
}
