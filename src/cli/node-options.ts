/** The options of all commands that call a node, and values that several commands share. */

import { type Command, InvalidArgumentError, Option } from "commander";
import { DEFAULT_URL, isAddress, unique } from "../client/connection/node-list.ts";
import type { AnswerOf, Parts, Route } from "../api/operation-table.ts";
import type { BatonClient, BatonClientOptions } from "../client/baton-client.ts";
import { durationMs } from "../core/duration.ts";
import { isJobId } from "../core/ids.ts";
import { TOKEN_OPTION, tokenFrom } from "./admin/credential.ts";
import { CliFailure, EXIT } from "./failure.ts";
import { CONNECTION_GROUP } from "./terminal/help-layout.ts";
import { OUTPUT_FORMATS, type OutputFormat } from "./terminal/output.ts";
import { WaitingLine } from "./terminal/progress-bar.ts";
import { type Terminal, isAttended } from "./terminal/terminal.ts";

export { DEFAULT_URL };
/** A node that does not answer a small request in this time has other troubles than being slow. */
const CALL_TIMEOUT_MS = 10_000;

export interface NodeOptions {
  readonly url?: string;
  readonly token?: string;
  readonly timeout?: number;
  readonly output: OutputFormat;
}

export function withNodeOptions(command: Command): Command {
  const options = [
    new Option("--url <url,url…>", `URLs of one or more nodes (BATON_URL; default ${DEFAULT_URL})`),
    new Option(...TOKEN_OPTION),
    new Option("--timeout <duration>", "give up after this long (default 10s for each call)").argParser(
      duration,
    ),
    new Option("-o, --output <format>", "how to print data").choices(OUTPUT_FORMATS).default("table"),
  ];
  for (const option of options) command.addOption(option.helpGroup(CONNECTION_GROUP));
  return command;
}

export function withYes(command: Command): Command {
  return command.option("-y, --yes", "do not ask");
}

/** The token is null for whoever wants to know what is answered without one. */
type Target = Partial<Pick<NodeOptions, "url" | "timeout">> & { readonly token?: string | null | undefined };

/**
 * Only the named nodes are called, and a slow answer is seen to be waited for. A command that runs for long says `how`: it discovers other
 * nodes, in case the named one dies, and shows by itself what it does.
 */
export async function connect(
  terminal: Terminal,
  options: Target,
  how?: Pick<BatonClientOptions, "discover" | "retry">,
): Promise<BatonClient> {
  const urls = nodeUrls(terminal, options);
  // Loaded when it is needed: the HTTP client takes longer to load than all the rest together.
  const { BatonClient } = await import("../client/baton-client.ts");
  const settings = {
    urls,
    token: options.token === null ? null : tokenFrom(terminal, { token: options.token }),
    timeoutMs: options.timeout ?? CALL_TIMEOUT_MS,
    clock: terminal.clock,
  };
  if (how) return new BatonClient({ ...settings, ...how });
  const line = new WaitingLine(terminal, () => `waiting for ${client.node ?? urls.join(", ")}`);
  class WatchedClient extends BatonClient {
    override request<R extends Route>(route: R, parts?: Parts<R>, timeoutMs?: number): Promise<AnswerOf<R>> {
      return line.during(super.request(route, parts, timeoutMs));
    }
  }
  const client = new WatchedClient({ ...settings, discover: false });
  return client;
}

export function nodeUrls(terminal: Terminal, options: Pick<NodeOptions, "url">): readonly string[] {
  const text = options.url ?? (terminal.environment["BATON_URL"] || DEFAULT_URL);
  const urls = text.split(",").map((url) => url.trim());
  const bad = urls.find((url) => !isAddress(url));
  if (bad === undefined) return unique(urls);
  const who = options.url !== undefined ? "--url" : "BATON_URL";
  const message = `${who} must be a URL such as ${DEFAULT_URL}, not ${JSON.stringify(bad)}`;
  throw new CliFailure(EXIT.usage, message, /^[\w.-]+:\d{1,5}$/.test(bad) ? `write http://${bad}` : null);
}

// Readers of option values. Commander puts the name of the option before the message.

export function duration(text: string): number {
  try {
    return durationMs(text);
  } catch (error) {
    if (error instanceof RangeError) throw new InvalidArgumentError(`It ${error.message}.`);
    throw error;
  }
}

export function wholeNumber(text: string): number {
  if (!/^-?\d{1,15}$/.test(text)) throw new InvalidArgumentError("It must be a whole number.");
  return Number(text);
}

export function portNumber(text: string): number {
  const port = wholeNumber(text);
  if (port < 1 || port > 65_535) throw new InvalidArgumentError("It must be a port from 1 to 65535.");
  return port;
}

/** A time with its zone; without one it would mean something else on the node than here. */
export function instant(text: string): string {
  const withZone = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}.*(?:Z|[+-]\d{2}:?\d{2})$/i.test(text);
  const at = Date.parse(text);
  if (!withZone || Number.isNaN(at)) {
    throw new InvalidArgumentError("It must be a time with its zone, such as 2026-01-31T09:00:00Z.");
  }
  return new Date(at).toISOString();
}

export function timeOrAge({ clock }: Terminal): (text: string) => string {
  return (text) => {
    if (text.includes("T")) return instant(text);
    try {
      return new Date(clock.now() - durationMs(text)).toISOString();
    } catch {
      const message = "It must be a time such as 2026-01-31T09:00:00Z, or a duration such as 1h.";
      throw new InvalidArgumentError(message);
    }
  };
}

export function repeated(text: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), text];
}

export function jobIdArgument(text: string): string {
  if (isJobId(text)) return text;
  throw new InvalidArgumentError("It is not a job id: those are a node's name, a dash and a uuid.");
}

export function jobIdArguments(text: string, before: readonly string[] | undefined): readonly string[] {
  return repeated(jobIdArgument(text), before);
}

export interface ConfirmOptions {
  readonly yes?: boolean;
}

/** Without a terminal, jobs and nodes named one by one need no answer, for scripts; what a filter selects (`many`) needs `--yes`. */
export async function confirm(
  terminal: Terminal,
  { yes }: ConfirmOptions,
  question: string,
  { many = false }: { readonly many?: boolean } = {},
): Promise<void> {
  if (yes) return;
  if (!isAttended(terminal)) {
    if (!many) return;
    const message = `${question.replace(/\?$/, "")}: confirmation needed`;
    throw new CliFailure(EXIT.usage, message, "pass --yes, or run it on a terminal; --dry-run only counts");
  }
  const { confirm: ask } = await import("@clack/prompts");
  const { input, err: output } = terminal;
  const answer = await ask({ message: question, initialValue: false, input, output });
  // Ctrl-C gives a symbol.
  if (answer !== true) throw new CliFailure(EXIT.failure, "nothing was changed");
}
