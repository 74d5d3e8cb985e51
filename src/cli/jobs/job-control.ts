/** `baton jobs retry`, `cancel` and `delete`: jobs by their ids, or all jobs that match a filter. */

import { type Command, InvalidArgumentError, Option } from "commander";
import { filterText, FILTER_FIELDS, filtersIn, type FieldFilters } from "../../core/jobs/job-fields.ts";
import type { BatonClient } from "../../client/baton-client.ts";
import { type BulkAction, type BulkOptions, changeMany, questionOf } from "./bulk-change.ts";
import {
  confirm,
  type ConfirmOptions,
  connect,
  jobIdArguments,
  timeOrAge,
  wholeNumber,
  withNodeOptions,
  withYes,
} from "../node-options.ts";
import { CliFailure, EXIT, type ExitCode, report } from "../failure.ts";
import { ago, count, several } from "../../core/format-figures.ts";
import { print, statusText, table } from "../terminal/output.ts";
import { ProgressBar } from "../terminal/progress-bar.ts";
import { say, type Terminal } from "../terminal/terminal.ts";
import type { AnswerOf } from "../../api/operation-table.ts";
import { JOB_STATUSES } from "../../core/jobs/job.ts";

interface ControlOptions extends BulkOptions, JobFilter, ConfirmOptions {
  readonly all?: boolean;
  readonly errorCode?: string;
  readonly reason?: string;
}

interface Changed {
  readonly job_id: string;
  readonly status: string;
  readonly cancel_requested?: boolean;
}

const COMMANDS: readonly (readonly [action: BulkAction, about: string])[] = [
  ["retry", "put failed or cancelled jobs back into the queue (--all: those that failed)"],
  ["cancel", "cancel jobs: at once if they wait, through their AbortSignal if they run"],
  ["delete", "delete jobs that are not running, with their logs and results"],
];

async function act(client: BatonClient, action: BulkAction, id: string, reason?: string): Promise<Changed> {
  if (action === "retry") return client.retry(id);
  if (action === "cancel") return client.cancel(id, reason);
  await client.remove(id);
  return { job_id: id, status: "deleted" };
}

export function addJobControlCommands(jobs: Command, terminal: Terminal): void {
  for (const [action, about] of COMMANDS) {
    const command = withYes(withNodeOptions(withJobFilter(jobs.command(action), terminal)))
      .description(about)
      .argument("[job-id...]", "ids of jobs", jobIdArguments)
      .option("--all", "all jobs that match the filters, after a question with their number")
      .option("--error-code <code>", "only jobs that failed with this code")
      .option("--dry-run", "only count them")
      .action(control.bind(null, terminal, action));
    if (action === "cancel") command.option("--reason <text>", "why, for the job's error");
  }
}

async function control(
  terminal: Terminal,
  action: BulkAction,
  ids: readonly string[] = [],
  options: ControlOptions,
): Promise<void> {
  const filter = filterOf(options);
  const picks = Object.keys(filter).length > 0 || options.errorCode !== undefined || options.dryRun;
  if (ids.length > 0 && (options.all || picks)) {
    throw new CliFailure(EXIT.usage, "give the ids of jobs, or --all with filters, not both");
  }
  if (ids.length === 0 && !options.all) {
    const remedy = picks
      ? "add --all to change every job that matches the filters"
      : "see the ids with `baton jobs list`; --all takes filters such as --status failed";
    throw new CliFailure(EXIT.usage, "specify job ids or --all", remedy);
  }
  await using client = await connect(terminal, options);
  if (ids.length > 0) {
    // Awaited here: the connection is closed when this function returns.
    await eachOf(terminal, client, action, ids, options);
    return;
  }
  // Cancelled jobs can be retried too, but --all does not mean those.
  const picked = action === "retry" ? { status: "failed" as const, ...filter } : filter;
  const { errorCode: code, reason } = options;
  const wanted = { ...picked, error_code: code };
  const request = { action, what: filterText(wanted), filters: [wanted], reason };
  await changeMany(terminal, client, request, options);
}

/** More than that is asked for on a terminal. */
const UNASKED_MAX = 1;

/** One failure does not keep the others from being tried; the first decides the exit code. */
async function eachOf(
  terminal: Terminal,
  client: BatonClient,
  action: BulkAction,
  ids: readonly string[],
  options: ControlOptions,
): Promise<void> {
  const { reason, output } = options;
  if (action === "delete" || ids.length > UNASKED_MAX)
    await confirm(terminal, options, questionOf(action, several(ids.length, "job")));
  if (ids.length === 1) {
    const answer = await act(client, action, ids[0]!, reason);
    return print(terminal, output, answer, () => changedText(terminal, answer));
  }
  const bar = new ProgressBar(terminal, action);
  const answers: Changed[] = [];
  let code: ExitCode | null = null;
  for (const [at, id] of ids.entries()) {
    try {
      answers.push(await act(client, action, id, reason));
    } catch (error) {
      bar.clear();
      const exit = report(terminal, error);
      code ??= exit;
      // The next call would not get through either.
      if (exit === EXIT.unreachable || exit === EXIT.timeout) break;
    }
    bar.show(at + 1, ids.length);
  }
  bar.clear();
  print(terminal, output, answers, () => answers.map((each) => changedText(terminal, each)).join("\n"));
  if (code !== null)
    throw new CliFailure(code, `${ids.length - answers.length} of ${ids.length} jobs were not changed`);
}

function changedText(terminal: Terminal, answer: Changed): string {
  const note = answer.cancel_requested ? " (asked to stop)" : "";
  return `${answer.job_id} ${statusText(terminal, answer.status)}${note}`;
}

interface FailuresOptions extends BulkOptions {
  readonly since?: string;
  readonly queue?: string;
  readonly task?: string;
  readonly limit: number;
  readonly retry?: true | readonly number[];
}

type Group = AnswerOf<"GET /cluster/failures">["groups"][number];

export function addJobFailuresCommand(jobs: Command, terminal: Terminal): void {
  withYes(withNodeOptions(jobs.command("failures")))
    .description("show failed jobs grouped by error; --retry tries all of a group again")
    .option("--since <time>", "only jobs created since: a time, or 1h", timeOrAge(terminal))
    .option("--queue <queue>", "only jobs of this queue")
    .option("--task <task>", "only jobs of this task")
    .option("--limit <number>", "maximum number of groups", wholeNumber, 20)
    .option(
      "--retry [numbers]",
      "retry the groups with these numbers, as 1,3, or all that are shown",
      numbers,
    )
    .option("--dry-run", "with --retry: only count them")
    .action((options: FailuresOptions) => failures(terminal, options));
}

async function failures(terminal: Terminal, options: FailuresOptions): Promise<void> {
  const { since, queue, task, limit, retry, output } = options;
  await using client = await connect(terminal, options);
  const answer = await client.cluster.failures({ since, queue, task, limit });
  if (retry === undefined) {
    print(terminal, output, answer, () => groupsTable(terminal, answer.groups));
    if (!answer.complete && output === "table") {
      say(terminal, `of the newest ${count(answer.looked_at)} failed jobs; there are more`);
    }
    if (answer.groups.length > 0 && output === "table")
      say(terminal, "retry a group with: baton jobs failures --retry 1");
    return;
  }
  const groups = picked(answer.groups, retry);
  if (output === "table") say(terminal, groupsTable({ ...terminal, out: terminal.err }, answer.groups));
  const filters = groups.map(({ task: of, code, message }) => ({
    status: "failed" as const,
    task: of,
    error_code: code,
    error_message: message,
    since,
    queue,
  }));
  const which = retry === true ? "" : ` of ${groups.length === 1 ? "group" : "groups"} ${retry.join(", ")}`;
  await changeMany(terminal, client, { action: "retry", filters, what: `failed jobs${which}` }, options);
}

function picked(groups: readonly Group[], retry: true | readonly number[]): readonly Group[] {
  if (retry === true) return groups;
  return retry.map((number) => {
    const group = groups[number - 1];
    if (group) return group;
    throw new CliFailure(EXIT.notFound, `there is no group ${number}; there are ${groups.length}`);
  });
}

function groupsTable(terminal: Terminal, groups: readonly Group[]): string {
  if (groups.length === 0) return "no failed jobs";
  const now = terminal.clock.now();
  return table(
    terminal,
    [
      ["#", (group) => groups.indexOf(group) + 1],
      ["count", (group) => count(group.count)],
      ["task", ({ task }) => task],
      ["code", ({ code }) => code, { spare: 1 }],
      ["last", ({ last_at: at }) => ago(now, at)],
      ["example", (group) => group.example_job_id, { spare: 2 }],
      ["message", ({ message }) => message, { flexible: true }],
    ],
    groups,
  );
}

function numbers(text: string): readonly number[] {
  const found = text.split(",").map((each) => Number(each.trim()));
  if (found.every((each) => Number.isInteger(each) && each > 0)) return found;
  throw new InvalidArgumentError("It must be numbers of groups, as 1,3.");
}

export interface JobFilter extends FieldFilters {
  readonly status?: (typeof JOB_STATUSES)[number];
  readonly since?: string;
  readonly until?: string;
}

export function withJobFilter(command: Command, terminal: Terminal): Command {
  const times = "2026-01-31T09:00:00Z, or 1h for an hour ago";
  command.addOption(new Option("--status <status>", "only jobs in this state").choices(JOB_STATUSES));
  for (const { filter } of FILTER_FIELDS) command.option(`--${filter.name} <${filter.name}>`, filter.about);
  return command
    .option("--since <time>", `only jobs created since: ${times}`, timeOrAge(terminal))
    .option("--until <time>", "only jobs created before", timeOrAge(terminal));
}

export function filterOf(options: JobFilter): JobFilter {
  const { status, since, until } = options;
  const given = Object.entries({ status, ...filtersIn(options), since, until });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}
