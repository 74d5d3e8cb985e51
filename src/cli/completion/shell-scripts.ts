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
