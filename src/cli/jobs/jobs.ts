/** `baton jobs`: shows and manages jobs. */

import type { Command } from "commander";
import type { BatonClient } from "../../client/baton-client.ts";
import { BatonClientError } from "../../client/client-error.ts";
import { CliFailure, EXIT } from "../failure.ts";
import type { Timeline } from "./job-text.ts";
import { jobText } from "./job-text.ts";
import { addJobFailuresCommand } from "./job-failures.ts";
import { addJobListCommand } from "./job-list.ts";
import { addJobLogsCommand } from "./job-logs.ts";
import { addJobControlCommands } from "./job-control.ts";
import type { NodeOptions } from "../node-options.ts";
import { connect, jobIdArgument, jobIdArguments, withNodeOptions } from "../node-options.ts";
import { print, statusText, table } from "../terminal/output.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { waitForResult } from "./wait-for-result.ts";
import type { WatchOptions } from "../terminal/watch.ts";
import { watched, withWatch } from "../terminal/watch.ts";

export function addJobsCommands(program: Command, terminal: Terminal): void {
  const jobs = program.command("jobs").description("look at jobs and steer them");

  addJobListCommand(jobs, terminal);

  withWatch(withNodeOptions(jobs.command("show")))
    .description("show everything about a job: its runs, and why it waits")
    .argument("<job-id>", "", jobIdArgument)
    .action((id: string, options: WatchOptions) =>
      watched(terminal, options, async (page) => {
        await using client = await connect(page, options);
        const [job, timeline] = await Promise.all([client.job(id), timelineIfAny(client, id)]);
        print(page, options.output, { ...job, ...(timeline && { timeline }) }, () =>
          jobText(page, job, timeline),
        );
      }),
    );

  addJobLogsCommand(jobs, terminal);

  withNodeOptions(jobs.command("wait"))
    .description("wait until jobs have ended; prints the result of one, how each of several ended")
    .argument("<job-id...>", "", jobIdArguments)
    .action((ids: readonly string[], options: NodeOptions) => wait(terminal, ids, options));

  addJobControlCommands(jobs, terminal);
  addJobFailuresCommand(jobs, terminal);
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
      ["job", "status", "error"],
      ended.map((each) => [each.job_id, statusText(terminal, each.status), each.error?.message ?? ""]),
      { cut: "error" },
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
