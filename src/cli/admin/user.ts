/** `baton user`: manages the users of the dashboard. */

import type { Command } from "commander";
import type { Permission } from "../../core/access/permissions.ts";
import { addClientCommand, type ClientCall } from "../client-command.ts";
import { ago } from "../../core/format-figures.ts";
import { table } from "../terminal/output.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { readPassword } from "./credential.ts";
import { accessName, permissionOption } from "./token.ts";

export function addUserCommands(program: Command, terminal: Terminal): void {
  const user = program.command("user").description("manage the users who may log in");
  const userArgument = (command: Command): Command =>
    command.argument("<name>", "name of the user", accessName);

  addClientCommand(user, terminal, {
    usage: "add",
    about: "add a user; the password is asked for, or read from stdin",
    setUp: (command) =>
      userArgument(command.alias("create")).addOption(
        permissionOption("what the user may do; each includes those before it").default("read"),
      ),
    call: async (client, { name, options }: ClientCall<{ readonly permission: Permission }>) => {
      // Before a password is typed in vain.
      await client.access.users();
      const password = await readPassword(terminal, name);
      return client.access.addUser({ name, password, permission: options.permission });
    },
    text: ({ permission }, { name }) => `${name} may ${permission}`,
  });

  addClientCommand(user, terminal, {
    usage: "list",
    about: "list users: what they may do, and when they logged in last",
    call: (client) => client.access.users(),
    text: ({ users }) => {
      if (users.length === 0) return "there are no users; add one with: baton user add NAME";
      const now = terminal.clock.now();
      return table(
        terminal,
        [
          ["name", ({ name }) => name],
          ["permission", ({ permission }) => permission],
          ["created", ({ created_at: at }) => ago(now, at)],
          ["by", ({ created_by: by }) => by],
          ["last login", ({ last_used_at: at }) => ago(now, at)],
        ],
        users,
      );
    },
  });

  addClientCommand(user, terminal, {
    usage: "passwd",
    about: "give a user another password; their sessions end",
    setUp: userArgument,
    call: async (client, { name }) => {
      await client.access.users();
      return client.access.setPassword(name, await readPassword(terminal, name));
    },
    text: (_, { name }) => `${name} has a new password; old sessions have ended`,
  });

  addClientCommand(user, terminal, {
    usage: "remove",
    about: "remove a user; their sessions end",
    setUp: userArgument,
    call: (client, { name }) => client.access.removeUser(name),
    text: (_, { name }) => `${name} is removed`,
  });
}
