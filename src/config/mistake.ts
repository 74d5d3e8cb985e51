/** Mistakes in settings, and the sources of values, so that a mistake can name its place. */

/** An invalid value. The message continues after the name of the setting: "must be a whole number, not 1.5". */
export class Mistake extends Error {
  override readonly name = "Mistake";
}

export interface Advice {
  readonly message: string;
  readonly remedy: string | null;
}

export function adviceText({ message, remedy }: Advice): string {
  return remedy === null ? message : `${message}; ${remedy}`;
}

export function whyUnreadable(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") return "there is no such file";
  return code === "EISDIR" ? "it is a directory" : String(code);
}

export type Source =
  | { readonly from: "default" }
  | { readonly from: "profile"; readonly profile: string }
  | { readonly from: "file"; readonly file: string; readonly line: number; readonly column: number }
  | { readonly from: "environment"; readonly variable: string }
  | { readonly from: "flag"; readonly flag: string }
  /** Of `createNode`. */
  | { readonly from: "option"; readonly option: string }
  | { readonly from: "start"; readonly why: string };

/** A value as it was found, not checked yet. */
export interface Found {
  readonly path: string;
  /** Text from the environment and from flags; from a file whatever YAML makes of it. */
  readonly value: unknown;
  readonly source: Source;
}

export interface SourceContent {
  readonly found: readonly Found[];
  readonly mistakes: readonly string[];
  readonly warnings: readonly Advice[];
}

export function sourceText(source: Source): string {
  if (source.from === "file") return `${source.file}:${source.line}:${source.column}`;
  if (source.from === "profile") return `profile ${source.profile}`;
  if (source.from === "environment") return source.variable;
  if (source.from === "flag") return source.flag;
  if (source.from === "option") return source.option;
  return source.from === "start" ? source.why : source.from;
}

/** `baton.yaml:3:9: http.port must be …`, `BATON_HTTP__PORT must be …`, `--port must be …`. */
export function describeMistake(source: Source, path: string, mistake: string): string {
  if (source.from === "file") return `${sourceText(source)}: ${path} ${mistake}`;
  return `${isChosen(source) ? sourceText(source) : path} ${mistake}`;
}

export function isChosen(source: Source): boolean {
  return source.from !== "default" && source.from !== "profile" && source.from !== "start";
}
