/** Operations on users of the dashboard, who log in with a password. They need the permission `admin`. */

import { z } from "zod";
import { principalText } from "../../../core/access/permissions.ts";
import { BatonError } from "../../../core/errors.ts";
import {
  AccessName,
  Password,
  PermissionName,
  UserBody,
  accessOf,
  userBody,
} from "../../bodies/access-body.ts";
import { answer, operation } from "../../operation.ts";

const UserParams = z.strictObject({ name: AccessName });

export const listUsers = operation("GET /users", {
  permission: "admin",
  name: "list_users",
  summary: "All users",
  replies: { 200: z.object({ users: z.array(UserBody) }) },
  async handler(services) {
    return answer(200, { users: (await accessOf(services).users.list()).map(userBody) });
  },
});

export const addUser = operation("POST /users", {
  permission: "admin",
  name: "add_user",
  summary: "Add a user",
  body: z.strictObject({ name: AccessName, password: Password, permission: PermissionName }),
  audits: ({ body: { name, permission } }) => ({ name, permission }),
  replies: { 201: UserBody },
  async handler(services, { body, principal }) {
    const user = await accessOf(services).users.add({ ...body, by: principalText(principal!) });
    return answer(201, userBody(user));
  },
});

export const setPassword = operation("PUT /users/{name}/password", {
  permission: "admin",
  name: "set_password",
  summary: "Give a user another password; their sessions end",
  params: UserParams,
  body: z.strictObject({ password: Password }),
  replies: { 200: UserBody },
  async handler(services, { params, body }) {
    const user = await accessOf(services).users.setPassword(params.name, body.password);
    if (user) return answer(200, userBody(user));
    throw noSuchUser(params.name);
  },
});

export const removeUser = operation("DELETE /users/{name}", {
  permission: "admin",
  name: "remove_user",
  summary: "Remove a user; their sessions end",
  params: UserParams,
  replies: { 200: z.object({ name: z.string(), removed: z.literal(true) }) },
  async handler(services, { params }) {
    if (await accessOf(services).users.remove(params.name))
      return answer(200, { name: params.name, removed: true as const });
    throw noSuchUser(params.name);
  },
});

function noSuchUser(name: string): BatonError {
  return new BatonError("NOT_FOUND", `there is no user ${name}; baton user list shows them`);
}
