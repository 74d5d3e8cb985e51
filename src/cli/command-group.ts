/** Groups of commands: their behaviour without a subcommand, and with an unknown one. */

import type { Command } from "commander";
import { nearest } from "../core/errors.ts";

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
  // Named itself: then it is its argument that is too much.
  if (group.args[0] === command.name()) return usage(`too many arguments for '${command.name()}': '${word}'`);
  if (names.includes(word)) {
    return usage(`'${word}' must come before the options: baton ${group.name()} ${word} …`);
  }
  const guess = nearest(word, names);
  return usage(`unknown command '${word}'${guess === null ? "" : `\n(Did you mean ${guess}?)`}`);
}
