/** `baton jobs logs`: prints the logs of a job, and follows new lines. */

import type { Command } from "commander";
import type { LogLineBody } from "../../api/bodies/job-body.ts";
import type { BatonClient } from "../../client/baton-client.ts";
import type { NodeOptions } from "../node-options.ts";
import { connect, jobIdArgument, wholeNumber, withNodeOptions } from "../node-options.ts";
import { print } from "../terminal/output.ts";
import { harmless } from "../terminal/plain-text.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { say, styled } from "../terminal/terminal.ts";

const LOGS_PAGE = 5_000;

interface LogsOptions extends NodeOptions {
  readonly follow?: boolean;
  readonly after: number;
}

export function addJobLogsCommand(jobs: Command, terminal: Terminal): void {
  withNodeOptions(jobs.command("logs"))
    .description("print what a job has logged")
    .argument("<job-id>", "", jobIdArgument)
    .option("-f, --follow", "go on until the job ends")
    .option("--after <seq>", "only lines behind this sequence number", wholeNumber, 0)
    .action((id: string, options: LogsOptions) => logs(terminal, id, options));
}

async function logs(terminal: Terminal, id: string, options: LogsOptions): Promise<void> {
  await using client = await connect(terminal, options);
  if (!options.follow) {
    const lines = await allLogs(client, id, options.after);
    if (options.output === "table")
      for (const line of lines) terminal.out.write(`${logText(terminal, line)}\n`);
    else print(terminal, options.output, lines, () => "");
    return;
  }
  // Asked first, because following goes on trying where one call tells at once that there is no node or no job.
  await client.job(id);
  for await (const event of client.followLogs(id, { after: options.after })) {
    if (event.event === "end") say(terminal, `${id} is ${event.status}`);
    if (event.event !== "log") continue;
    // One object a line: a stream has no end to wait for.
    const text = options.output === "table" ? logText(terminal, event.line) : JSON.stringify(event.line);
    terminal.out.write(`${text}\n`);
  }
}

async function allLogs(client: BatonClient, id: string, after: number): Promise<LogLineBody[]> {
  const lines: LogLineBody[] = [];
  for (let from = after; ;) {
    const page = await client.logs(id, { after: from, limit: LOGS_PAGE });
    lines.push(...page.logs);
    if (page.logs.length < LOGS_PAGE) return lines;
    from = page.next_after;
  }
}

function logText(terminal: Terminal, line: LogLineBody): string {
  const { out } = terminal;
  const style = line.level === "error" ? "red" : line.level === "warn" ? "yellow" : "dim";
  // A pipe gets what the task wrote; a terminal would obey it.
  const message = out.isTTY ? harmless(line.message) : line.message;
  return `${styled(out, "dim", line.at)} ${styled(out, style, line.level.padEnd(5))} ${message}`;
}
