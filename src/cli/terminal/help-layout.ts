/** The layout of help: names on the left, descriptions on the right; a long name has a line of its own. */

import { type Command, Help, type Option } from "commander";
import { wrapped } from "./plain-text.ts";
import type { Terminal } from "./terminal.ts";

export const HELP_WIDTH = 80;
const NAMES_MAX = 26;
const [INDENT, GAP] = [2, 2];

/** Of the options that all commands with a node share, below those of the command itself. */
export const CONNECTION_GROUP = "Node and output:";
const OWN_GROUP = "Options:";

export const HELP_LAYOUT: Partial<Help> = {
  subcommandTerm,
  groupItems<Item extends Command | Option>(
    all: Item[],
    visible: Item[],
    getGroup: (item: Item) => string,
  ): Map<string, Item[]> {
    const groups = new Help().groupItems(all, visible, getGroup);
    return new Map([...groups].sort(([a], [b]) => placeOf(a) - placeOf(b)));
  },
  /** One long name must not push everything else to the right. */
  padWidth(command, helper) {
    const longest = Math.max(
      helper.longestOptionTermLength(command, helper),
      helper.longestSubcommandTermLength(command, helper),
      helper.longestArgumentTermLength(command, helper),
    );
    return Math.min(longest, NAMES_MAX, Math.floor((helper.helpWidth ?? HELP_WIDTH) * 0.4));
  },
  formatItem(term, termWidth, description, helper) {
    const column = INDENT + termWidth + GAP;
    const lines = wrapped(description, Math.max(20, (helper.helpWidth ?? HELP_WIDTH) - column));
    const [first = "", ...rest] = helper.displayWidth(term) > termWidth ? ["", ...lines] : lines;
    const below = rest.map((line) => `\n${" ".repeat(column)}${line}`).join("");
    return (" ".repeat(INDENT) + term.padEnd(termWidth + GAP) + first).trimEnd() + below;
  },
};

function placeOf(group: string): number {
  if (group === OWN_GROUP) return 0;
  return group === CONNECTION_GROUP ? 2 : 1;
}

/** Paragraphs below the options, as wide as the rest. Wrapped when they are shown. */
export function below({ out }: Terminal, ...paragraphs: readonly string[]): () => string {
  const width = Math.max(20, out.columns ?? HELP_WIDTH);
  return () => paragraphs.map((text) => `\n${wrapped(text, width).join("\n")}`).join("\n");
}

function subcommandTerm(command: Command): string {
  const places = command.registeredArguments.map((argument) => {
    const name = argument.name() + (argument.variadic ? "..." : "");
    return argument.required ? `<${name}>` : `[${name}]`;
  });
  return [[command.name(), ...command.aliases()].join("|"), ...places].join(" ");
}
