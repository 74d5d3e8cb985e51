/** `baton jobs retry`, `cancel` and `delete`: jobs by their ids, or all jobs that match a filter. */

import type { Command } from "commander";
import { filterText } from "../../core/jobs/job-fields.ts";
import type { BatonClient } from "../../client/baton-client.ts";
import type { BulkAction, BulkOptions } from "./bulk-change.ts";
import { changeMany } from "./bulk-change.ts";
import type { ConfirmOptions } from "../terminal/confirm.ts";
import { confirm } from "../terminal/confirm.ts";
import type { ExitCode } from "../failure.ts";
import { CliFailure, EXIT, report } from "../failure.ts";
import { several } from "../../core/figures.ts";
import type { JobFilter } from "./job-filter.ts";
import { filterOf, withJobFilter } from "./job-filter.ts";
import { connect, jobIdArguments, withNodeOptions, withYes } from "../node-options.ts";
import { print, statusText } from "../terminal/output.ts";
import { ProgressBar } from "../terminal/progress-bar.ts";
import type { Terminal } from "../terminal/terminal.ts";

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

type Act = (client: BatonClient, id: string, options: ControlOptions) => Promise<Changed>;

const COMMANDS: readonly {
  readonly action: BulkAction;
  readonly about: string;
  readonly act: Act;
}[] = [
  {
    action: "retry",
    about: "put failed or cancelled jobs back into the queue (--all: those that failed)",
    act: (client, id) => client.retry(id),
  },
  {
    action: "cancel",
    about: "cancel jobs: at once if they wait, through their AbortSignal if they run",
    act: (client, id, { reason }) => client.cancel(id, reason),
  },
  {
    action: "delete",
    about: "delete jobs that are not running, with their logs and results",
    act: async (client, id) => {
      await client.remove(id);
      return { job_id: id, status: "deleted" };
    },
  },
];

export function addJobControlCommands(jobs: Command, terminal: Terminal): void {
  for (const { action, about, act } of COMMANDS) {
    const command = withYes(withNodeOptions(withJobFilter(jobs.command(action), terminal)))
      .description(about)
      .argument("[job-id...]", "ids of jobs", jobIdArguments)
      .option("--all", "all jobs that match the filters, after a question with their number")
      .option("--error-code <code>", "only jobs that failed with this code")
      .option("--dry-run", "only count them")
      .action((ids: readonly string[] | undefined, options: ControlOptions) =>
        control(terminal, action, act, ids ?? [], options),
      );
    if (action === "cancel") command.option("--reason <text>", "why, for the job's error");
  }
}

async function control(
  terminal: Terminal,
  action: BulkAction,
  act: Act,
  ids: readonly string[],
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
    await eachOf(terminal, client, ids, options, act, action);
    return;
  }
  // Cancelled jobs can be retried too, but --all does not mean those.
  const picked = action === "retry" ? { status: "failed" as const, ...filter } : filter;
  const { errorCode: code, reason } = options;
  const wanted = { ...picked, ...(code !== undefined && { error_code: code }) };
  await changeMany(
    terminal,
    client,
    { action, what: filterText(wanted), filters: [wanted], reason },
    options,
  );
}

/** More than that is asked for on a terminal. */
const UNASKED_MAX = 1;

/** One failure does not keep the others from being tried; the first decides the exit code. */
async function eachOf(
  terminal: Terminal,
  client: BatonClient,
  ids: readonly string[],
  options: ControlOptions,
  act: Act,
  action: BulkAction,
): Promise<void> {
  if (action === "delete" || ids.length > UNASKED_MAX) {
    await confirm(
      terminal,
      options,
      `${action[0]!.toUpperCase()}${action.slice(1)} ${several(ids.length, "job")}?`,
    );
  }
  if (ids.length === 1) {
    const answer = await act(client, ids[0]!, options);
    return print(terminal, options.output, answer, () => changedText(terminal, answer));
  }
  const bar = new ProgressBar(terminal, action);
  const answers: Changed[] = [];
  let code: ExitCode | null = null;
  for (const [at, id] of ids.entries()) {
    try {
      answers.push(await act(client, id, options));
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
  print(terminal, options.output, answers, () =>
    answers.map((each) => changedText(terminal, each)).join("\n"),
  );
  if (code !== null)
    throw new CliFailure(code, `${ids.length - answers.length} of ${ids.length} jobs were not changed`);
}

function changedText(terminal: Terminal, answer: Changed): string {
  const note = answer.cancel_requested ? " (asked to stop)" : "";
  return `${answer.job_id} ${statusText(terminal, answer.status)}${note}`;
}
