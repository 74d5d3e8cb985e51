/** The completion script for bash, version 3.2 (macOS) or later, without the package bash-completion. */

import type { CommandNode, Values } from "./command-tree.ts";
import { optionsOf } from "./command-tree.ts";

export function bashScript(tree: readonly CommandNode[]): string {
  return `# Completion of baton for bash. Type: source <(baton completion bash)
# or write it where bash-completion looks: baton completion bash > ~/.local/share/bash-completion/completions/baton

# What there is behind a command: subs, opts, and values="kind words".
__baton_command() {
  subs="" opts=""
  case "$1" in
${tree.map(commandCase).join("\n")}
  esac
}

# What an option takes (empty: nothing), or the argument at a place.
__baton_values() {
  values=""
  case "$1 $2" in
${tree.flatMap(valueCases).join("\n")}
  esac
}

_baton() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" path="" place=0 skip="" word i subs opts values
  COMPREPLY=()
  # --option=value comes as three words.
  [ "$cur" = "=" ] && cur=""
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    [ "$word" = "=" ] && continue
    # So does an address, and only its first part was counted.
    if [ "$word" = ":" ]; then skip=":"; continue; fi
    if [ -n "$skip" ]; then skip=""; continue; fi
    if [[ "$word" == -* ]]; then
      __baton_values "$path" "$word"
      [ -n "$values" ] && skip="$word"
      continue
    fi
    __baton_command "$path"
    if [[ " $subs " == *" $word "* ]]; then path="\${path:+$path }$word"; else place=$((place + 1)); fi
  done
  __baton_command "$path"
  if [ -n "$skip" ]; then
    __baton_values "$path" "$skip"
  elif [[ "$cur" == -* ]]; then
    values="words $opts"
  elif [ -n "$subs" ] && [ "$place" -eq 0 ]; then
    values="words $subs"
  else
    __baton_values "$path" "$place"
    [ -z "$values" ] && __baton_values "$path" "rest"
  fi
  case "$values" in
    "words "*) COMPREPLY=($(compgen -W "\${values#words }" -- "$cur")) ;;
    "names "*) COMPREPLY=($(compgen -W "$(baton completion values "\${values#names }" 2>/dev/null)" -- "$cur")) ;;
    files) COMPREPLY=($(compgen -f -- "$cur")); compopt -o filenames 2>/dev/null ;;
  esac
}

complete -F _baton baton
`;
}

function commandCase(node: CommandNode): string {
  const subs = node.commands.map(({ name }) => name).join(" ");
  const opts = optionsOf(node)
    .flatMap(({ flags }) => flags)
    .join(" ");
  return `    "${node.path}") subs="${subs}" opts="${opts}" ;;`;
}

function valueCases(node: CommandNode): string[] {
  const options = node.options.flatMap(({ flags, value }) =>
    value === null
      ? []
      : [`    ${flags.map((flag) => `"${node.path} ${flag}"`).join(" | ")}) values="${text(value)}" ;;`],
  );
  const places = node.arguments.flatMap(({ values, variadic }, at) => {
    if (values.kind === "any") return [];
    const patterns = [`"${node.path} ${at}"`, ...(variadic ? [`"${node.path} rest"`] : [])];
    return [`    ${patterns.join(" | ")}) values="${text(values)}" ;;`];
  });
  return [...options, ...places];
}

function text(values: Values): string {
  switch (values.kind) {
    case "words":
      return `words ${values.words.join(" ")}`;
    case "names":
      return `names ${values.of}`;
    case "files":
    case "any":
      return values.kind;
  }
}
