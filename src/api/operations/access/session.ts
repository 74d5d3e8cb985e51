/** Operations on sessions: log in, read the current user, log out. */

import { z } from "zod";
import { BatonError } from "../../../core/errors.ts";
import { AccessName, SessionBody, accessOf, sessionBody } from "../../bodies/access-body.ts";
import { answer, operation } from "../../operation.ts";
import { EVERYWHERE, sessionCookie, sessionIn } from "../../bodies/session-cookie.ts";

export const whoAmI = operation("GET /session", {
  name: "who_am_i",
  summary: "Who you are here, and what you may do",
  replies: { 200: SessionBody },
  handler: (services, { principal }) => answer(200, sessionBody(principal!, services.access?.open ?? true)),
});

export const login = operation("POST /session", {
  name: "login",
  summary: "Log in with a name and a password; the session comes as a cookie",
  permission: "public",
  login: true,
  body: z.strictObject({ user: AccessName, password: z.string().min(1).max(1_024) }),
  audits: ({ body }) => ({ user: body.user }),
  replies: { 200: SessionBody },
  async handler(services, { body, cookie = EVERYWHERE }) {
    const { sessions, open } = accessOf(services);
    const made = await sessions.login(body.user, body.password);
    if (!made) throw new BatonError("UNAUTHENTICATED", "the name or the password is wrong");
    const { name, permission, id } = made.user;
    return answer(200, sessionBody({ kind: "user", name, permission, id }, open), {
      "set-cookie": sessionCookie(made.text, cookie),
      "cache-control": "no-store",
    });
  },
});

export const logout = operation("DELETE /session", {
  name: "logout",
  summary: "Log out: the session ends on every node",
  permission: "read",
  replies: { 200: z.object({ status: z.literal("ok") }) },
  async handler(services, { headers, cookie = EVERYWHERE }) {
    const text = typeof headers["cookie"] === "string" ? sessionIn(headers["cookie"]) : null;
    if (text !== null) await accessOf(services).sessions.logout(text);
    return answer(200, { status: "ok" as const }, { "set-cookie": sessionCookie("", cookie) });
  },
});
