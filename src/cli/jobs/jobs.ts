/** `baton jobs`: lists, shows and manages jobs, and waits for them. */

import type { Command } from "commander";
import { filterText } from "../../core/jobs/job-fields.ts";
import type { BatonClient } from "../../client/baton-client.ts";
import { BatonClientError } from "../../client/client-error.ts";
import type { ClientCall } from "../client-command.ts";
import { addClientCommand } from "../client-command.ts";
import { CliFailure, EXIT } from "../failure.ts";
import type { NodeOptions } from "../node-options.ts";
import { connect, jobIdArgument, jobIdArguments, wholeNumber, withNodeOptions } from "../node-options.ts";
import { print, statusPiece, table } from "../terminal/output.ts";
import { sayPartial } from "../terminal/partial-answer.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { say } from "../terminal/terminal.ts";
import { addJobControlCommands } from "./job-control.ts";
import { addJobFailuresCommand } from "./job-failures.ts";
import type { JobFilter } from "./job-filter.ts";
import { filterOf, withJobFilter } from "./job-filter.ts";
import { addJobLogsCommand } from "./job-logs.ts";
import type { Timeline } from "./job-text.ts";
import { jobColumns, jobText } from "./job-text.ts";
import { waitForResult } from "./wait-for-result.ts";

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
      const [job, timeline] = await Promise.all([client.job(name), timelineIfAny(client, name)]);
      return { ...job, ...(timeline && { timeline }) };
    },
    text: ({ timeline, ...job }, { terminal: page }) => jobText(page, job, timeline ?? null),
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
    call: (client, { options }: ClientCall<ListOptions>) => {
      const { limit, cursor } = options;
      return client.cluster.jobs({ ...filterOf(options), limit, ...(cursor !== undefined && { cursor }) });
    },
    text: ({ items }, { options, terminal: page }) =>
      items.length === 0
        ? `no ${filterText(filterOf(options))}`
        : table(page, jobColumns(page.clock.now(), items), items),
    note: ({ nodes, next_cursor: next }, { options }) => {
      sayPartial(terminal, nodes);
      if (next !== null && options.output === "table" && options.watch === undefined) {
        say(terminal, `there are more: --cursor ${next}`);
      }
    },
  });
}

/** An older node has none. */
async function timelineIfAny(client: BatonClient, id: string): Promise<Timeline | null> {
  return client.timeline(id).catch((error: unknown) => {
    if (error instanceof BatonClientError && error.status === 404) return null;
    throw error;
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
  const ended = await Promise.all(ids.map((id) => endOf(client, id, options.timeout)));
  print(terminal, options.output, ended, () =>
    table(
      terminal,
      [
        ["job", ({ job_id: id }) => id],
        ["status", ({ status }) => statusPiece(status)],
        ["error", ({ error }) => error?.message ?? "", { flexible: true }],
      ],
      ended,
    ),
  );
  const bad = ended.filter(({ status }) => status !== "completed").length;
  if (bad > 0) throw new CliFailure(EXIT.failure, `${bad} of ${ids.length} jobs did not succeed`);
}

async function endOf(client: BatonClient, id: string, timeoutMs: number | undefined) {
  await client.job(id);
  const { job } = await client.wait(id, timeoutMs === undefined ? {} : { timeoutMs });
  return { job_id: id, status: job.status, error: job.error };
}
