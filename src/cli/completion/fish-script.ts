/** The completion script for fish, with the descriptions of commands and options. */

import type { CommandNode, OptionNode, Values } from "./command-tree.ts";
import { optionsOf } from "./command-tree.ts";

export function fishScript(tree: readonly CommandNode[]): string {
  const paths = tree.filter(({ path }) => path !== "").map(({ path }) => quoted(path));
  const valued = [
    ...new Set(
      tree
        .flatMap(({ options }) => options.filter(({ value }) => value !== null))
        .flatMap(({ flags }) => flags),
    ),
  ];
  return `# Completion of baton for fish. Type: baton completion fish | source
# or write it where fish looks: baton completion fish > ~/.config/fish/completions/baton.fish

set -g __baton_paths ${paths.join(" ")}
set -g __baton_valued ${valued.join(" ")}

# The command that was typed so far, without its options and arguments.
function __baton_path
    set -l path ""
    set -l skip 0
    for word in (commandline -opc)[2..]
        if test $skip -eq 1
            set skip 0
        else if contains -- $word $__baton_valued
            set skip 1
        else if not string match -q -- '-*' $word
            set -l longer (string trim -- "$path $word")
            contains -- $longer $__baton_paths; and set path $longer
        end
    end
    echo $path
end

function __baton_at
    test (__baton_path) = "$argv[1]"
end

complete -c baton -f
${tree.flatMap(lines).join("\n")}
`;
}

function lines(node: CommandNode): string[] {
  const at = `complete -c baton -n ${quoted(`__baton_at ${quoted(node.path)}`)}`;
  return [
    ...node.commands.map(({ name, about }) => `${at} -a ${quoted(name)} -d ${quoted(about)}`),
    ...optionsOf(node).map(
      (option) => `${at}${flagsOf(option)}${valueOf(option.value)} -d ${quoted(option.about)}`,
    ),
    ...node.arguments.flatMap(({ values }) =>
      values.kind === "any" ? [] : [`${at}${valueOf(values).replace(" -r", "")}`],
    ),
  ];
}

function flagsOf({ flags }: OptionNode): string {
  return flags
    .map((flag) => (flag.startsWith("--") ? ` -l ${flag.slice(2)}` : ` -s ${flag.slice(1)}`))
    .join("");
}

function valueOf(value: Values | null): string {
  switch (value?.kind) {
    case undefined:
      return "";
    case "any":
      return " -x";
    case "files":
      return " -r -F";
    case "words":
      return ` -x -a ${quoted(value.words.join(" "))}`;
    case "names":
      return ` -x -a ${quoted(`(baton completion values ${value.of} 2>/dev/null)`)}`;
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
