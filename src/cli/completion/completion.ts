/** `baton completion`: prints scripts for shells, built from the existing commands. */

import type { Command } from "commander";
import { Argument } from "commander";
import { connect, withNodeOptions } from "../node-options.ts";
import type { NodeOptions } from "../node-options.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { NamedThing } from "./command-tree.ts";
import { commandTree, NAMED_THINGS } from "./command-tree.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;
/** Somebody waits with a finger on the key. */
const PATIENCE_MS = 1_000;

export function addCompletionCommand(program: Command, terminal: Terminal): void {
  const completion = program
    .command("completion")
    .description("print a completion script for a shell")
    .addHelpText(
      "after",
      "\nbash:  source <(baton completion bash)\nzsh:   source <(baton completion zsh)\nfish:  baton completion fish | source",
    );

  for (const shell of SHELLS) {
    completion
      .command(shell)
      .description(`print it for ${shell}`)
      .action(async () => void terminal.out.write(await scriptFor(shell, program)));
  }

  withNodeOptions(completion.command("values", { hidden: true }))
    .description("names that a cluster knows, for the scripts")
    .addArgument(new Argument("<things>", "which").choices(NAMED_THINGS))
    .action((things: NamedThing, options: NodeOptions) => values(terminal, things, options));
}

async function scriptFor(shell: (typeof SHELLS)[number], program: Command): Promise<string> {
  const tree = commandTree(program);
  switch (shell) {
    case "bash":
      return (await import("./bash-script.ts")).bashScript(tree);
    case "zsh":
      return (await import("./zsh-script.ts")).zshScript(tree);
    case "fish":
      return (await import("./fish-script.ts")).fishScript(tree);
  }
}

/** Silent when there is no node: a shell that completes shows no errors. */
async function values(terminal: Terminal, things: NamedThing, options: NodeOptions): Promise<void> {
  await using client = await connect(terminal, { ...options, timeout: options.timeout ?? PATIENCE_MS });
  const read: Readonly<Record<NamedThing, () => Promise<readonly { readonly name: string }[]>>> = {
    nodes: async () => (await client.cluster.nodes()).nodes,
    queues: async () => (await client.queues()).queues,
    schedules: async () => (await client.schedules()).schedules,
    tasks: async () => (await client.tasks()).tasks,
  };
  const named = await read[things]().catch(() => []);
  for (const { name } of named) terminal.out.write(`${name}\n`);
}
