/** Exit codes of commands, and their error messages. */

import { CallError } from "../client/client-error.ts";
import { BatonError, type ErrorCode, hasCode } from "../core/errors.ts";
import { say, styled, type Terminal } from "./terminal/terminal.ts";

/** Ends by a signal are 128 + its number and need no code of ours. */
export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  notFound: 3,
  refused: 4,
  unreachable: 5,
  /** A drain that left jobs without a new owner: not lost, the leader finds them. */
  released: 6,
  config: 78,
  timeout: 124,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export class CliFailure extends Error {
  readonly exitCode: ExitCode;
  readonly hint: string | null;

  constructor(exitCode: ExitCode, message: string, hint: string | null = null) {
    super(message);
    this.name = "CliFailure";
    this.exitCode = exitCode;
    this.hint = hint;
  }
}

export function report(terminal: Terminal, error: unknown): ExitCode {
  const failure = asFailure(error);
  const [first, ...rest] = failure.message.split("\n");
  say(terminal, `${styled(terminal.err, "red", "error:")} ${first}`);
  for (const line of rest) say(terminal, line);
  if (failure.hint) say(terminal, `${styled(terminal.err, "cyan", "hint:")} ${failure.hint}`);
  return failure.exitCode;
}

export function asFailure(error: unknown): CliFailure {
  if (error instanceof CliFailure) return error;
  if (error instanceof CallError) return fromClient(error);
  if (hasCode(error, "BAD_CONFIG")) {
    const mistakes = mistakesOf(error);
    const title = mistakes.length === 1 ? [] : [`${mistakes.length} mistakes in the configuration`];
    return new CliFailure(EXIT.config, [...title, ...mistakes].join("\n"));
  }
  if (hasCode(error, "BAD_TASK")) return new CliFailure(EXIT.config, listed(error));
  // An expected error: its message is enough.
  if (error instanceof BatonError && error.code !== "INTERNAL")
    return new CliFailure(EXIT.failure, error.message, HINTS[error.code]);
  // An unexpected error: the stack helps to find it.
  return new CliFailure(
    EXIT.failure,
    error instanceof Error ? (error.stack ?? error.message) : String(error),
  );
}

/** What a program would write in a body. */
function inFlags(text: string): string {
  return text.replaceAll(/"(?:\[\d+\]\.)?allow_unknown": true/g, "--allow-unknown");
}

/** One line for each mistake, where there are several. */
function listed({ message, issues }: BatonError): string {
  if (issues.length < 2) return message;
  return [`${issues.length} mistakes`, ...issues.map((issue) => issue.message)].join("\n");
}

const HINTS: Partial<Record<ErrorCode, string>> = {
  DATA_IN_USE: "stop the other node, or give this one its own --data directory",
  STORE_UNAVAILABLE: "does the database run, and can this machine reach it? see --store",
};

export function mistakesOf({ message, details }: BatonError): readonly string[] {
  const { mistakes } = details as { readonly mistakes?: readonly string[] };
  return mistakes ?? [message];
}

const HOW_TO_GET_IN =
  "show a token with --token, BATON_TOKEN or BATON_TOKEN_FILE; the first one of a node is in the file admin-token of its data directory, or was shown when it started";

function howToBeAllowed(body: unknown): string | null {
  const { needs } = (body ?? {}) as { readonly needs?: unknown };
  if (typeof needs !== "string") return null;
  return `an administrator can create a token for you: baton token create --name NAME --permission ${needs}`;
}

function fromClient(error: CallError): CliFailure {
  if (error.code === "UNREACHABLE") {
    const hint = "start a node with `baton start`, or name another one with --url or BATON_URL";
    return new CliFailure(EXIT.unreachable, error.message, hint);
  }
  if (error.code === "TIMEOUT")
    return new CliFailure(EXIT.timeout, error.message, "wait longer with --timeout");
  if (error.code === "OUTCOME_UNKNOWN") {
    const late = (error.cause as Partial<CallError> | undefined)?.code === "TIMEOUT";
    const hint = "check whether it was done before you repeat it";
    return new CliFailure(late ? EXIT.timeout : EXIT.unreachable, error.message, hint);
  }
  const message = `${inFlags(listed(error))} (${error.code})`;
  if (error.code === "BAD_REPLY")
    return new CliFailure(EXIT.unreachable, message, "is --url or BATON_URL the address of a node?");
  if (error.status === 401) return new CliFailure(EXIT.refused, message, HOW_TO_GET_IN);
  if (error.status === 403) return new CliFailure(EXIT.refused, message, howToBeAllowed(error.body));
  if (error.code === "UNKNOWN_TASK")
    return new CliFailure(EXIT.refused, message, "see the tasks with `baton tasks`");
  if (error.status === 404) return new CliFailure(EXIT.notFound, message);
  const status = error.status ?? 0;
  const refused = (status >= 400 && status < 500) || status === 503;
  return new CliFailure(refused ? EXIT.refused : EXIT.failure, message);
}
