/** `baton completion`: scripts for shells, which know the commands and ask `baton completion words SHELL LINE` for the rest. */

import { Argument, type Command, type Option } from "commander";
import { connect } from "../node-options.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** A person waits for the answer. */
const CALL_TIMEOUT_MS = 1_000;

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
      .action(() => void terminal.out.write(SHELL_SCRIPTS[shell](commandsOf(program))));
  }

  completion
    .command("words", { hidden: true })
    .description("what may follow a line, for the scripts")
    .addArgument(new Argument("<shell>").choices(SHELLS))
    .argument("<line>", "up to the cursor")
    .action((shell: Shell, line: string) => words(terminal, program, shell, line));
}

async function words(terminal: Terminal, program: Command, shell: Shell, line: string): Promise<void> {
  const [, ...typed] = line.trimStart().split(/\s+/);
  const current = typed.pop() ?? "";
  const found = await candidates(terminal, program, typed, current);
  if (found === "files") return void terminal.out.write(":files\n");
  // Bash takes what follows = for a word of its own.
  const prefix = shell !== "bash" && current.startsWith("-") ? /^.*=/.exec(current)?.[0] : undefined;
  for (const { name, about } of found) {
    terminal.out.write(`${prefix ?? ""}${name}${shell === "bash" ? "" : `\t${about}`}\n`);
  }
}

async function candidates(
  terminal: Terminal,
  program: Command,
  typed: readonly string[],
  current: string,
): Promise<readonly Named[] | "files"> {
  let [command, place]: [Command, number] = [program, 0];
  let open: Option | undefined;
  for (const word of typed) {
    if (open) open = undefined;
    else if (word.startsWith("-")) open = optionsOf(command).find((each) => isValued(each, word));
    else {
      const next = place === 0 ? command.commands.find((each) => namesOf(each).includes(word)) : undefined;
      if (next) command = next;
      else place++;
    }
  }
  const [flag, value] = current.startsWith("--") ? current.split("=") : [];
  if (value !== undefined) open = optionsOf(command).find((each) => isValued(each, flag!));
  if (open) return valuesOf(terminal, /[<[]([^>\]]*)/.exec(open.flags)?.[1] ?? "", open.argChoices);
  if (current.startsWith("-")) {
    const flags = optionsOf(command).flatMap(({ short, long, description: about }) =>
      [short, long].flatMap((name) => (name ? [{ name, about }] : [])),
    );
    return [...flags, ...["-h", "--help"].map((name) => ({ name, about: "display help for command" }))];
  }
  if (place === 0 && command.commands.length > 0) return commandsOf(command);
  const all = command.registeredArguments;
  const argument = all[place] ?? (all.at(-1)?.variadic ? all.at(-1) : undefined);
  return argument ? valuesOf(terminal, argument.name(), argument.argChoices) : [];
}

function commandsOf(command: Command): readonly Named[] {
  return command.commands
    .filter((each) => !(each as unknown as { _hidden: boolean })._hidden)
    .flatMap((each) => namesOf(each).map((name) => ({ name, about: each.description() })));
}

function namesOf(command: Command): readonly string[] {
  return [command.name(), ...command.aliases()];
}

/** Options of a default command are those of its group too. */
function optionsOf(command: Command): readonly Option[] {
  // Commander has no other way to ask for it.
  const { _defaultCommandName: name } = command as unknown as { _defaultCommandName: string | null };
  const byDefault = command.commands.find((each) => each.name() === name)?.options ?? [];
  const all = [...command.options, ...byDefault].filter(({ hidden }) => !hidden);
  return all.filter((option, at) => all.findIndex(({ long }) => long === option.long) === at);
}

function isValued({ required, optional, short, long }: Option, flag: string): boolean {
  return (required || optional) && (flag === short || flag === long);
}

async function valuesOf(
  terminal: Terminal,
  name: string,
  choices: readonly string[] | undefined,
): Promise<readonly Named[] | "files"> {
  if (/^(?:file|dir|directory|path)$/.test(name)) return "files";
  const listed = choices ?? (/^[\w-]+(?:\|[\w-]+)+$/.test(name) ? name.split("|") : null);
  if (listed) return listed.map((each) => ({ name: each, about: "" }));
  await using client = await connect(terminal, { timeout: CALL_TIMEOUT_MS });
  const known: Readonly<Record<string, () => Promise<readonly { readonly name: string }[]>>> = {
    node: async () => (await client.cluster.nodes()).nodes,
    queue: async () => (await client.queues()).queues,
    schedule: async () => (await client.schedules()).schedules,
    task: async () => (await client.tasks()).tasks,
  };
  // Without a node there are no names: a shell that completes shows no errors.
  const named = (await known[name]?.().catch(() => [])) ?? [];
  return named.map((each) => ({ name: each.name, about: "" }));
}

/** The completion scripts for bash 3.2 (macOS) or later, zsh and fish. They call `baton completion words`. */

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

export interface Named {
  readonly name: string;
  readonly about: string;
}

export const SHELL_SCRIPTS: Readonly<Record<Shell, (commands: readonly Named[]) => string>> = {
  bash: (commands) => `# Completion of baton for bash. Type: source <(baton completion bash)
# or write it where bash-completion looks: baton completion bash > ~/.local/share/bash-completion/completions/baton

_baton() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" found
  # --option=value comes as three words.
  [ "$cur" = "=" ] && cur=""
  if [ "$COMP_CWORD" -eq 1 ] && [[ "$cur" != -* ]]; then
    found="${commands.map(({ name }) => name).join(" ")}"
  else
    found="$(baton completion words bash "\${COMP_LINE:0:COMP_POINT}" 2>/dev/null)"
  fi
  COMPREPLY=()
  if [ "$found" = ":files" ]; then
    COMPREPLY=($(compgen -f -- "$cur")); compopt -o filenames 2>/dev/null
  else
    COMPREPLY=($(compgen -W "$found" -- "$cur"))
  fi
}

complete -F _baton baton
`,

  zsh: (commands) => `#compdef baton
# Completion of baton for zsh. Type: source <(baton completion zsh)
# or write it into a directory of $fpath: baton completion zsh > ~/.zsh/completions/_baton

_baton() {
  local -a found
  if (( CURRENT == 2 )) && [[ "\${words[2]}" != -* ]]; then
    found=(${commands.map(({ name, about }) => quoted(`${name}:${about}`)).join(" ")})
  else
    found=(\${(f)"$(baton completion words zsh "\${(j: :)words[1,CURRENT]}" 2>/dev/null)"})
    if [[ "\${found[1]}" == ":files" ]]; then _files; return; fi
    found=("\${(@)found//:/\\\\:}")
    found=("\${(@)found/$'\\t'/:}")
  fi
  _describe value found
}

# Sourced, or found in $fpath and called for the first time.
if [[ "\${funcstack[1]}" == _baton ]]; then _baton "$@"; else compdef _baton baton; fi
`,

  fish: (commands) => `# Completion of baton for fish. Type: baton completion fish | source
# or write it where fish looks: baton completion fish > ~/.config/fish/completions/baton.fish

function __baton_words
    set -l line (commandline -cp)
    set -l found (baton completion words fish "$line" 2>/dev/null)
    if test "$found[1]" = ":files"
        __fish_complete_path (commandline -ct)
    else
        printf '%s\\n' $found
    end
end

complete -c baton -f
${commands.map(({ name, about }) => `complete -c baton -n __fish_use_subcommand -a ${quoted(name)} -d ${quoted(about)}`).join("\n")}
complete -c baton -n 'not __fish_use_subcommand' -a '(__baton_words)'
`,
};

/** In single quotes, which all three shells read alike. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "")}'`;
}
