/** `baton jobs`: look at jobs and steer them. */

import type { Command } from "commander";
import { InvalidArgumentError, Option } from "commander";
import type { LogLineBody } from "../api/job-body.ts";
import type { BatonClient } from "../client/client.ts";
import { parseDuration } from "../config/duration.ts";
import { JOB_STATUSES } from "../core/job.ts";
import { CliFailure, EXIT, tell } from "./failure.ts";
import type { ExitCode } from "./failure.ts";
import { jobFacts } from "./job-facts.ts";
import type { NodeOptions } from "./node-options.ts";
import {
  connect,
  instant,
  jobIdArgument,
  jobIdArguments,
  wholeNumber,
  withNodeOptions,
} from "./node-options.ts";
import { ago, print, statusText, table } from "./output.ts";
import type { Terminal } from "./terminal.ts";
import { say, styled } from "./terminal.ts";

const LOGS_PAGE = 5_000;

interface ListOptions extends NodeOptions {
  readonly status?: (typeof JOB_STATUSES)[number];
  readonly queue?: string;
  readonly task?: string;
  readonly since?: string;
  readonly limit: number;
  readonly cursor?: string;
}

export function addJobsCommands(program: Command, terminal: Terminal): void {
  const jobs = program.command("jobs").description("look at jobs and steer them");

  withNodeOptions(jobs.command("list"))
    .description("list jobs, newest first")
    .addOption(new Option("--status <status>", "only jobs in this state").choices(JOB_STATUSES))
    .option("--queue <name>", "only jobs of this queue")
    .option("--task <name>", "only jobs of this task")
    .option(
      "--since <time>",
      "only jobs created since: 2026-01-31T09:00:00Z, or 1h for the last hour",
      since(terminal),
    )
    .option("--limit <number>", "at most so many", wholeNumber, 50)
    .option("--cursor <cursor>", "go on behind an earlier list")
    .action((options: ListOptions) => list(terminal, options));

  withNodeOptions(jobs.command("show"))
    .description("show everything about a job")
    .argument("<job-id>", "", jobIdArgument)
    .action(async (id: string, options: NodeOptions) => {
      await using client = await connect(terminal, options);
      const job = await client.job(id);
      print(terminal, options.output, job, () => jobFacts(terminal, job));
    });

  withNodeOptions(jobs.command("logs"))
    .description("print what a job has logged")
    .argument("<job-id>", "", jobIdArgument)
    .option("-f, --follow", "go on until the job ends")
    .option("--after <seq>", "only lines behind this sequence number", wholeNumber, 0)
    .action((id: string, options: NodeOptions & { follow?: boolean; after: number }) =>
      logs(terminal, id, options),
    );

  withNodeOptions(jobs.command("cancel"))
    .description("cancel jobs: at once if they wait, through their AbortSignal if they run")
    .argument("<job-id...>", "", jobIdArguments)
    .option("--reason <text>", "why, for the job's error")
    .action((ids: readonly string[], options: NodeOptions & { reason?: string }) =>
      forEach(terminal, ids, options, (client, id) => client.cancel(id, options.reason)),
    );

  withNodeOptions(jobs.command("retry"))
    .description("put failed or cancelled jobs back into the queue")
    .argument("<job-id...>", "", jobIdArguments)
    .action((ids: readonly string[], options: NodeOptions) =>
      forEach(terminal, ids, options, (client, id) => client.retry(id)),
    );

  withNodeOptions(jobs.command("delete"))
    .description("remove jobs that do not run, with their logs and results")
    .argument("<job-id...>", "", jobIdArguments)
    .action((ids: readonly string[], options: NodeOptions) =>
      forEach(terminal, ids, options, async (client, id) => {
        await client.remove(id);
        return { job_id: id, status: "deleted" };
      }),
    );
}

async function list(terminal: Terminal, options: ListOptions): Promise<void> {
  await using client = await connect(terminal, options);
  const { status, queue, task, since, limit, cursor } = options;
  const page = await client.jobs({ status, queue, task, since, limit, cursor });
  print(terminal, options.output, page, () =>
    table(
      terminal,
      ["job", "task", "queue", "status", "attempts", "created", "error"],
      page.jobs.map((job) => [
        job.job_id,
        job.task,
        job.queue,
        statusText(terminal, job.status),
        `${job.attempts}/${job.max_attempts}`,
        ago(terminal, job.created_at),
        job.error?.message.split("\n", 1)[0]!.slice(0, 60) ?? "",
      ]),
    ),
  );
  if (page.next_cursor !== null && options.output === "table") {
    say(terminal, `there are more: --cursor ${page.next_cursor}`);
  }
}

async function logs(
  terminal: Terminal,
  id: string,
  options: NodeOptions & { follow?: boolean; after: number },
): Promise<void> {
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
  const style = line.level === "error" ? "red" : line.level === "warn" ? "yellow" : "dim";
  return `${styled(terminal.out, "dim", line.at)} ${styled(terminal.out, style, line.level.padEnd(5))} ${line.message}`;
}

/** One failure does not keep the others from being tried; the first decides the exit code. */
async function forEach(
  terminal: Terminal,
  ids: readonly string[],
  options: NodeOptions,
  act: (client: BatonClient, id: string) => Promise<{ job_id: string; status: string }>,
): Promise<void> {
  await using client = await connect(terminal, options);
  if (ids.length === 1) {
    const answer = await act(client, ids[0]!);
    return print(terminal, options.output, answer, () => answerText(terminal, answer));
  }
  const answers: { job_id: string; status: string }[] = [];
  let code: ExitCode | null = null;
  for (const id of ids) {
    try {
      answers.push(await act(client, id));
    } catch (error) {
      const told = tell(terminal, error);
      code ??= told;
      // The next call would not get through either.
      if (told === EXIT.unreachable || told === EXIT.timeout) break;
    }
  }
  print(terminal, options.output, answers, () =>
    answers.map((each) => answerText(terminal, each)).join("\n"),
  );
  if (code !== null)
    throw new CliFailure(code, `${ids.length - answers.length} of ${ids.length} jobs were not changed`);
}

function answerText(
  terminal: Terminal,
  answer: { job_id: string; status: string; cancel_requested?: boolean },
): string {
  const note = answer.cancel_requested ? " (told to stop)" : "";
  return `${answer.job_id} ${statusText(terminal, answer.status)}${note}`;
}

/** A time, or how long ago. */
function since(terminal: Terminal): (text: string) => string {
  return (text) => {
    if (text.includes("T")) return instant(text);
    try {
      return new Date(terminal.clock.now() - parseDuration(text)).toISOString();
    } catch {
      throw new InvalidArgumentError(
        "It must be a time such as 2026-01-31T09:00:00Z, or a duration such as 1h.",
      );
    }
  };
}
