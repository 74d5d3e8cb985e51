/** The completion script for zsh, with the descriptions of commands and options. */

import type { CommandNode, Values } from "./command-tree.ts";
import { optionsOf } from "./command-tree.ts";

export function zshScript(tree: readonly CommandNode[]): string {
  return `#compdef baton
# Completion of baton for zsh. Type: source <(baton completion zsh)
# or write it into a directory of $fpath: baton completion zsh > ~/.zsh/completions/_baton

# What there is behind a command.
__baton_command() {
  subs=() opts=()
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
  local line="" place=0 skip="" word values
  local -a subs opts found
  integer i
  for ((i = 2; i < CURRENT; i++)); do
    word="\${words[i]}"
    if [[ -n "$skip" ]]; then skip=""; continue; fi
    if [[ "$word" == -*=* ]]; then continue; fi
    if [[ "$word" == -* ]]; then
      __baton_values "$line" "$word"
      [[ -n "$values" ]] && skip="$word"
      continue
    fi
    __baton_command "$line"
    if (( \${subs[(I)$word:*]} )); then line="\${line:+$line }$word"; else place=$((place + 1)); fi
  done
  __baton_command "$line"
  values=""
  if [[ -n "$skip" ]]; then
    __baton_values "$line" "$skip"
  elif [[ "\${words[CURRENT]}" == -* ]]; then
    _describe -o option opts
    return
  elif (( \${#subs} && place == 0 )); then
    _describe command subs
    return
  else
    __baton_values "$line" "$place"
    [[ -z "$values" ]] && __baton_values "$line" rest
  fi
  case "$values" in
    "words "*) found=(\${=values#words }); compadd -a found ;;
    "names "*) found=(\${(f)"$(baton completion values "\${values#names }" 2>/dev/null)"}); compadd -a found ;;
    files) _files ;;
  esac
}

# Sourced, or found in $fpath and called for the first time.
if [[ "\${funcstack[1]}" == _baton ]]; then _baton "$@"; else compdef _baton baton; fi
`;
}

function commandCase(node: CommandNode): string {
  const subs = node.commands.map(({ name, about }) => entry(name, about));
  const opts = optionsOf(node).flatMap(({ flags, about }) => flags.map((flag) => entry(flag, about)));
  return `    "${node.path}") subs=(${subs.join(" ")}) opts=(${opts.join(" ")}) ;;`;
}

function valueCases(node: CommandNode): string[] {
  const options = node.options.flatMap(({ flags, value }) =>
    value === null
      ? []
      : [`    ${flags.map((flag) => `"${node.path} ${flag}"`).join("|")}) values="${text(value)}" ;;`],
  );
  const places = node.arguments.flatMap(({ values, variadic }, at) => {
    if (values.kind === "any") return [];
    const patterns = [`"${node.path} ${at}"`, ...(variadic ? [`"${node.path} rest"`] : [])];
    return [`    ${patterns.join("|")}) values="${text(values)}" ;;`];
  });
  return [...options, ...places];
}

/** `name:description`, as _describe wants it. */
function entry(name: string, about: string): string {
  return quoted(`${name.replaceAll(":", "\\:")}:${about.replaceAll(":", "\\:")}`);
}

function quoted(value: string): string {
  return `'${value.replaceAll("'", "'\\''")}'`;
}

function text(values: Values): string {
  if (values.kind === "words") return `words ${values.words.join(" ")}`;
  return values.kind === "names" ? `names ${values.of}` : values.kind;
}
