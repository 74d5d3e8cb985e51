/** `baton token` creates, lists and revokes tokens; `baton user` manages the users of the dashboard. */

import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { storeOptions } from "../../config/fabric.ts";
import { sqliteFile } from "../../config/values/secret-url.ts";
import { loadSettings } from "../../config/load-settings.ts";
import { ACCESS_NAME, type Permission, PERMISSIONS } from "../../core/access/permissions.ts";
import { systemRandom } from "../../platform/random.ts";
import type { AnswerOf } from "../../api/operation-table.ts";
import { addClientCommand, type ClientCall } from "../client-command.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { connect, duration, type NodeOptions, withNodeOptions } from "../node-options.ts";
import { type Column, print, table } from "../terminal/output.ts";
import { ago } from "../../core/format-figures.ts";
import { say, type Terminal } from "../terminal/terminal.ts";
import { readPassword } from "./credential.ts";

interface CreateOptions extends NodeOptions {
  readonly name: string;
  readonly permission: Permission;
  readonly expires?: number;
  readonly store?: string;
  readonly data?: string;
  readonly config?: string;
}

export function addTokenCommands(program: Command, terminal: Terminal): void {
  const token = program.command("token").description("create, list and revoke tokens");

  withNodeOptions(token.command("create"))
    .description("create a token and print it; it is shown only once")
    .requiredOption("--name <name>", "what it is for, as it is shown in lists and in the audit", accessName)
    .addOption(permissionOption("what it may do; each includes those before it").makeOptionMandatory())
    .option("--expires <duration>", "when it ends by itself, as 90d (default: never)", duration)
    .option("--store <url>", "write it into this database, when no node can be called")
    .option("--data <dir>", "write it into the embedded store of this directory, while no node uses it")
    .option("--config <file>", "with --store or --data: the configuration file of the node")
    .action((options: CreateOptions) => create(terminal, options));

  addClientCommand(token, terminal, {
    usage: "list",
    about: "list tokens: what they may do, and when they were used last",
    call: (client) => client.access.tokens(),
    text: ({ tokens }) =>
      tokens.length === 0
        ? "there are no tokens; make one with: baton token create --name NAME --permission read"
        : table(terminal, tokenColumns(terminal.clock.now()), tokens),
  });

  addClientCommand(token, terminal, {
    usage: "revoke",
    about: "revoke a token: within seconds no node accepts it any more",
    setUp: (command) => command.argument("<token>", "its id, or its name if only one token has it"),
    call: async (client, { name }) => client.access.revokeToken(idOf(name, await client.access.tokens())),
    text: ({ name, id }) => `${name} (${id}) is revoked`,
  });
}

type Tokens = AnswerOf<"GET /tokens">;

function tokenColumns(now: number): readonly Column<Tokens["tokens"][number]>[] {
  return [
    ["id", ({ id }) => id],
    ["name", ({ name }) => name],
    ["permission", ({ permission }) => permission],
    ["created", ({ created_at: at }) => ago(now, at)],
    ["by", ({ created_by: by }) => by],
    ["last used", ({ last_used_at: at }) => ago(now, at)],
    ["expires", ({ expired, expires_at: at }) => (expired ? "expired" : (ago(now, at) ?? "never"))],
  ];
}

function idOf(which: string, { tokens }: Tokens): string {
  const found = tokens.filter(({ id, name }) => id === which || name === which);
  const exact = found.find(({ id }) => id === which) ?? (found.length === 1 ? found[0] : undefined);
  if (exact) return exact.id;
  if (found.length === 0) {
    throw new CliFailure(EXIT.notFound, `there is no token ${which}`, "see them with `baton token list`");
  }
  const ids = found.map(({ id }) => id).join(", ");
  const message = `${found.length} tokens have the name ${which}`;
  throw new CliFailure(EXIT.usage, message, `name one by its id: ${ids}`);
}

export function permissionOption(about: string): Option {
  return new Option("--permission <permission>", about).choices(PERMISSIONS);
}

export function accessName(text: string): string {
  if (ACCESS_NAME.test(text)) return text;
  throw new InvalidArgumentError(
    "It must be 1 to 64 letters, digits or . _ @ - with a letter or a digit at both ends.",
  );
}

async function create(terminal: Terminal, options: CreateOptions): Promise<void> {
  const made =
    options.store === undefined && options.data === undefined
      ? await createAtNode(terminal, options)
      : await createInStore(terminal, options);
  // Only the token on stdout, so that it can go straight into a file or a variable.
  print(terminal, options.output, made, () => made.token);
  const until = options.expires === undefined ? "" : ", until it expires";
  const text = `${made.name} may ${made.permission}${until}; keep the token, it is not shown again (BATON_TOKEN, --token)`;
  say(terminal, text);
}

async function createAtNode(terminal: Terminal, { name, permission, expires, ...options }: CreateOptions) {
  await using client = await connect(terminal, options);
  return await client.access.createToken({ name, permission, expires_in_ms: expires });
}

/** Past all nodes: whoever may write into the store may do anything anyway. */
async function createInStore(terminal: Terminal, options: CreateOptions) {
  const { settings } = loadSettings({
    cwd: terminal.cwd,
    environment: terminal.environment,
    configFile: options.config,
    flags: { store: options.store, data: options.data },
  });
  const file = sqliteFile(settings);
  if (settings.store === "memory")
    throw new CliFailure(EXIT.usage, "a store in memory belongs to its node; call the node, with --url");
  if (file !== null && !existsSync(file)) {
    const message = `there is no store in ${dirname(file)}`;
    throw new CliFailure(EXIT.notFound, message, "name the data directory of a node with --data");
  }
  const [{ tokenBody }, { newToken, tokenOf }, { openStore }] = await Promise.all([
    import("../../api/operations/access/access.ts"),
    import("../../access/token-service.ts"),
    import("../../store/open-store.ts"),
  ]);
  const { clock } = terminal;
  const { name, permission, expires: expiresInMs = null } = options;
  const text = newToken();
  const request = { name, permission, expiresInMs, by: "command line" };
  const token = tokenOf({ clock, random: systemRandom, identity: settings }, text, request);
  // Rejects with DATA_IN_USE while a node has an embedded store open.
  await using store = await openStore(storeOptions(settings, { connections: 2, clock }));
  await store.access.put([token]);
  return { ...tokenBody(token, clock.now()), token: text };
}

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
