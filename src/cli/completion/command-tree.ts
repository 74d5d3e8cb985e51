/** The commands for completion: plain data, built from the commander tree. */

import type { Command, Option } from "commander";

/** What may stand there: nothing known, names of files, fixed words, or what a cluster has. */
export type Values =
  | { readonly kind: "any" }
  | { readonly kind: "files" }
  | { readonly kind: "words"; readonly words: readonly string[] }
  | { readonly kind: "names"; readonly of: NamedThing };

export const NAMED_THINGS = ["nodes", "queues", "schedules", "tasks"] as const;
export type NamedThing = (typeof NAMED_THINGS)[number];

export interface OptionNode {
  /** `-o`, `--output`: as many as there are. */
  readonly flags: readonly string[];
  readonly about: string;
  /** Null for one that stands alone. */
  readonly value: Values | null;
}

export interface CommandNode {
  /** `jobs list`; empty for the program itself. */
  readonly path: string;
  readonly about: string;
  readonly options: readonly OptionNode[];
  readonly arguments: readonly { readonly values: Values; readonly variadic: boolean }[];
  readonly commands: readonly { readonly name: string; readonly about: string }[];
}

/** All commands, those above before those below. Options of a default command are those of its group too. */
export function commandTree(program: Command): readonly CommandNode[] {
  return below(program, []);
}

function below(command: Command, path: readonly string[]): CommandNode[] {
  const children = command.commands.filter((each) => !isHidden(each));
  const byDefault = children.find((each) => each.name() === defaultName(command));
  const own: CommandNode = {
    path: path.join(" "),
    about: command.description(),
    options: unique([...command.options, ...(byDefault?.options ?? [])].filter(({ hidden }) => !hidden)).map(
      optionNode,
    ),
    arguments: command.registeredArguments.map((argument) => ({
      values: argument.argChoices ? words(argument.argChoices) : valuesNamed(argument.name()),
      variadic: argument.variadic,
    })),
    commands: children.flatMap((each) =>
      [each.name(), ...each.aliases()].map((name) => ({ name, about: each.description() })),
    ),
  };
  const rest = children.flatMap((each) =>
    [each.name(), ...each.aliases()].flatMap((name) => below(each, [...path, name])),
  );
  return [own, ...rest];
}

const HELP: OptionNode = { flags: ["-h", "--help"], about: "display help for command", value: null };

export function optionsOf(node: CommandNode): readonly OptionNode[] {
  return [...node.options, HELP];
}

function optionNode(option: Option): OptionNode {
  const flags = [option.short, option.long].filter((flag) => flag !== undefined && flag !== null);
  const takes = option.required || option.optional;
  const placeholder = /[<[]([^>\]]*)/.exec(option.flags)?.[1] ?? "";
  const value = option.argChoices ? words(option.argChoices) : valuesNamed(placeholder);
  return { flags, about: option.description, value: takes ? value : null };
}

/** By the name of an argument, or of what an option takes. */
function valuesNamed(name: string): Values {
  if (/^(?:file|dir|path)$/.test(name)) return { kind: "files" };
  const named = NAMED_THINGS.find((thing) => thing.slice(0, -1) === name);
  if (named) return { kind: "names", of: named };
  // `auto|json|pretty`
  return /^[\w-]+(?:\|[\w-]+)+$/.test(name) ? words(name.split("|")) : { kind: "any" };
}

function words(all: readonly string[]): Values {
  return { kind: "words", words: all };
}

function unique(options: readonly Option[]): Option[] {
  return options.filter((option, at) => options.findIndex(({ long }) => long === option.long) === at);
}

// Commander keeps both to itself.
function defaultName(command: Command): string | null {
  return (command as unknown as { _defaultCommandName: string | null })._defaultCommandName;
}

function isHidden(command: Command): boolean {
  return (command as unknown as { _hidden: boolean })._hidden;
}
