/** `baton user`: manages the users of the dashboard. */

import type { Command } from "commander";
import type { Permission } from "../../core/access/permissions.ts";
import { readPassword } from "./credential.ts";
import type { NodeOptions } from "../node-options.ts";
import { connect, withNodeOptions } from "../node-options.ts";
import { ago, print, table } from "../terminal/output.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { accessName, permissionOption } from "./token.ts";

export function addUserCommands(program: Command, terminal: Terminal): void {
  const user = program.command("user").description("look after the people who may log in");

  withNodeOptions(user.command("add").alias("create"))
    .description("add a user; the password is asked for, or read from stdin")
    .argument("<name>", "name of the user", accessName)
    .addOption(permissionOption("what the user may do; each includes those before it").default("read"))
    .action(async (name: string, options: NodeOptions & { readonly permission: Permission }) => {
      const { permission } = options;
      await using client = await connect(terminal, options);
      // Before a password is typed for nothing.
      await client.access.users();
      const password = await readPassword(terminal, name);
      const answer = await client.access.addUser({ name, password, permission });
      print(terminal, options.output, answer, () => `${name} may ${answer.permission}`);
    });

  withNodeOptions(user.command("list"))
    .description("list users: what they may do, and when they logged in last")
    .action(async (options: NodeOptions) => {
      await using client = await connect(terminal, options);
      const answer = await client.access.users();
      print(terminal, options.output, answer, () =>
        answer.users.length === 0
          ? "there are no users; add one with: baton user add NAME"
          : table(
              terminal,
              ["name", "permission", "made", "by", "last login"],
              answer.users.map((each) => [
                each.name,
                each.permission,
                ago(terminal, each.created_at),
                each.created_by,
                ago(terminal, each.last_used_at),
              ]),
            ),
      );
    });

  withNodeOptions(user.command("passwd"))
    .description("give a user another password; their sessions end")
    .argument("<name>", "name of the user", accessName)
    .action(async (name: string, options: NodeOptions) => {
      await using client = await connect(terminal, options);
      await client.access.users();
      const password = await readPassword(terminal, name);
      const answer = await client.access.setPassword(name, password);
      print(terminal, options.output, answer, () => `${name} has a new password; old sessions have ended`);
    });

  withNodeOptions(user.command("remove"))
    .description("remove a user; their sessions end")
    .argument("<name>", "name of the user", accessName)
    .action(async (name: string, options: NodeOptions) => {
      await using client = await connect(terminal, options);
      const answer = await client.access.removeUser(name);
      print(terminal, options.output, answer, () => `${name} is removed`);
    });
}
