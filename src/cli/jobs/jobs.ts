/** `baton jobs`: lists, shows and manages jobs, and waits for them. */

import type { Command } from "commander";
import { filterText } from "../../core/jobs/job-fields.ts";
import type { BatonClient } from "../../client/baton-client.ts";
import { addClientCommand, type ClientCall } from "../client-command.ts";
import { CliFailure, EXIT } from "../failure.ts";
import {
  connect,
  jobIdArgument,
  jobIdArguments,
  type NodeOptions,
  wholeNumber,
  withNodeOptions,
} from "../node-options.ts";
import { type Column, print, sayPartial, statusPiece, table } from "../terminal/output.ts";
import { say, styled, type Terminal } from "../terminal/terminal.ts";
import {
  addJobControlCommands,
  addJobFailuresCommand,
  filterOf,
  type JobFilter,
  withJobFilter,
} from "./job-control.ts";
import { jobColumns, jobText } from "./job-text.ts";
import { waitForResult } from "./submit.ts";
import type { LogLineBody } from "../../api/bodies/job-body.ts";
import { harmless } from "../terminal/plain-text.ts";

interface ListOptions extends JobFilter {
  readonly limit: number;
  readonly cursor?: string;
}

export function addJobsCommands(program: Command, terminal: Terminal): void {
  const jobs = program.command("jobs").description("list and manage jobs");

  addListCommand(jobs, terminal);
  addClientCommand(jobs, terminal, {
    usage: "show",
    about: "show everything about a job: its runs, and why it waits",
    watch: true,
    setUp: (command) => command.argument("<job-id>", "", jobIdArgument),
    call: async (client, { name }) => {
      const [job, timeline] = await Promise.all([client.job(name), client.timeline(name)]);
      return { ...job, timeline };
    },
    text: ({ timeline, ...job }) => jobText(terminal, job, timeline),
  });

  addJobLogsCommand(jobs, terminal);

  withNodeOptions(jobs.command("wait"))
    .description("wait until jobs have ended; prints the result of one, how each of several ended")
    .argument("<job-id...>", "", jobIdArguments)
    .action((ids: readonly string[], options: NodeOptions) => wait(terminal, ids, options));

  addJobControlCommands(jobs, terminal);
  addJobFailuresCommand(jobs, terminal);
}

function addListCommand(jobs: Command, terminal: Terminal): void {
  addClientCommand(jobs, terminal, {
    usage: "list",
    about: "list jobs, newest first",
    isDefault: true,
    watch: true,
    setUp: (command) =>
      withJobFilter(command, terminal)
        .option("--limit <number>", "maximum number of jobs", wholeNumber, 50)
        .option("--cursor <cursor>", "continue after an earlier list"),
    call: (client, { options }: ClientCall<ListOptions>) =>
      client.cluster.jobs({ ...filterOf(options), limit: options.limit, cursor: options.cursor }),
    text: ({ items }, { options }) =>
      items.length === 0
        ? `no ${filterText(filterOf(options))}`
        : table(terminal, jobColumns(terminal.clock.now(), items), items),
    note: ({ nodes, partial, next_cursor: next }, { options }) => {
      // In a shared store a dead node has nothing that is missing.
      if (partial) sayPartial(terminal, nodes);
      if (next !== null && options.output === "table" && options.watch === undefined) {
        say(terminal, `there are more: --cursor ${next}`);
      }
    },
  });
}

async function wait(terminal: Terminal, ids: readonly string[], options: NodeOptions): Promise<void> {
  await using client = await connect(terminal, options);
  if (ids.length === 1) {
    const [id] = ids as [string];
    // One call tells at once that there is no node or no job.
    const { status } = await client.job(id);
    await waitForResult(terminal, client, id, options, `${id} is ${status}`);
    return;
  }
  const limit = options.timeout === undefined ? {} : { timeoutMs: options.timeout };
  const ended = await Promise.all(
    ids.map(async (id) => {
      await client.job(id);
      const { job } = await client.wait(id, limit);
      return { job_id: id, status: job.status, error: job.error };
    }),
  );
  const columns: readonly Column<(typeof ended)[number]>[] = [
    ["job", ({ job_id: id }) => id],
    ["status", ({ status }) => statusPiece(status)],
    ["error", ({ error }) => error?.message ?? "", { flexible: true }],
  ];
  print(terminal, options.output, ended, () => table(terminal, columns, ended));
  const bad = ended.filter(({ status }) => status !== "completed").length;
  if (bad > 0) throw new CliFailure(EXIT.failure, `${bad} of ${ids.length} jobs did not succeed`);
}

const LOGS_PAGE = 5_000;

interface LogsOptions extends NodeOptions {
  readonly follow?: boolean;
  readonly after: number;
}

function addJobLogsCommand(jobs: Command, terminal: Terminal): void {
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
