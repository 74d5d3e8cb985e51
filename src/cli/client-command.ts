/** Commands that make one call to a node and print its answer, as rows. A command that does more has an action of its own. */

import type { Command } from "commander";
import type { BatonClient } from "../client/baton-client.ts";
import { nearest } from "../core/errors.ts";
import { connect, withNodeOptions, withYes, confirm, type ConfirmOptions } from "./node-options.ts";
import { printed } from "./terminal/output.ts";
import type { Terminal } from "./terminal/terminal.ts";
import { watched, type WatchOptions, withWatch } from "./terminal/watch.ts";

export interface ClientCall<Options = unknown> {
  readonly options: Options & WatchOptions & ConfirmOptions;
  readonly args: readonly (string | undefined)[];
  /** The first of them; empty if there is none. */
  readonly name: string;
}

export interface ClientCommand<Answer, Options> {
  readonly usage: string;
  readonly about: string;
  readonly isDefault?: true;
  readonly watch?: true;
  /** Adds options, arguments and aliases. */
  readonly setUp?: (command: Command) => unknown;
  readonly question?: (name: string) => string;
  readonly call: (client: BatonClient, call: ClientCall<Options>) => Promise<Answer>;
  readonly text: (answer: Answer, call: ClientCall<Options>) => string;
  /** Writes to stderr what the answer lacks. */
  readonly note?: (answer: Answer, call: ClientCall<Options>) => void;
}

export function addClientCommand<Answer, Options = unknown>(
  group: Command,
  terminal: Terminal,
  row: ClientCommand<Answer, Options>,
): void {
  const command = row.isDefault ? defaultCommand(group, row.usage) : group.command(row.usage);
  row.setUp?.(command);
  withNodeOptions(command.description(row.about));
  if (row.question) withYes(command);
  if (row.watch) withWatch(command);
  command.action(async (...given: readonly unknown[]) => {
    const options = given.at(-2) as ClientCall<Options>["options"];
    const args = given.slice(0, -2) as ClientCall["args"];
    const call = { options, args, name: args[0] ?? "" };
    await watched(terminal, options, async () => {
      await using client = await connect(terminal, options);
      if (row.question) await confirm(terminal, options, row.question(call.name));
      const answer = await row.call(client, call);
      const streaming = options.watch !== undefined;
      const text = printed(options.output, answer, () => row.text(answer, call), streaming);
      return { text, note: () => row.note?.(answer, call) };
    });
  });
}

/** `baton jobs` is `baton jobs list`. */
export function defaultCommand(group: Command, name: string): Command {
  const command = group.command(name, { isDefault: true }).allowExcessArguments();
  // Commander hands a misspelled name on to the default command, as an argument too many.
  return command.hook("preAction", () => {
    const word = command.args[command.registeredArguments.length];
    if (word !== undefined) unknownIn(group, command, word);
  });
}

function unknownIn(group: Command, command: Command, word: string): never {
  const names = group.commands.flatMap((each) => [each.name(), ...each.aliases()]);
  const usage = (what: string): never => group.error(`error: ${what}`, { code: "commander.unknownCommand" });
  // The group's command was typed: then the word is an argument too many.
  if (group.args[0] === command.name()) return usage(`too many arguments for '${command.name()}': '${word}'`);
  if (names.includes(word)) {
    return usage(`'${word}' must come before the options: baton ${group.name()} ${word} …`);
  }
  const guess = nearest(word, names);
  return usage(`unknown command '${word}'${guess === null ? "" : `\n(Did you mean ${guess}?)`}`);
}
