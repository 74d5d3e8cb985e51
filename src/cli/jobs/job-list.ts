/** `baton jobs list`: lists the jobs of the whole cluster, newest first. */

import type { Command } from "commander";
import type { JobSummaryBody } from "../../api/bodies/job-body.ts";
import { defaultCommand } from "../command-group.ts";
import type { JobFilter } from "./job-filter.ts";
import { filterOf, filterText, withJobFilter } from "./job-filter.ts";
import { connect, wholeNumber, withNodeOptions } from "../node-options.ts";
import { ago, print, statusText, table } from "../terminal/output.ts";
import { sayPartial } from "../terminal/partial-answer.ts";
import { plain } from "../terminal/plain-text.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { say } from "../terminal/terminal.ts";
import type { WatchOptions } from "../terminal/watch.ts";
import { watched, withWatch } from "../terminal/watch.ts";

interface ListOptions extends WatchOptions, JobFilter {
  readonly limit: number;
  readonly cursor?: string;
}

export function addJobListCommand(jobs: Command, terminal: Terminal): void {
  withWatch(withNodeOptions(withJobFilter(defaultCommand(jobs, "list"), terminal)))
    .description("list jobs, newest first")
    .option("--limit <number>", "at most so many", wholeNumber, 50)
    .option("--cursor <cursor>", "go on behind an earlier list")
    .action((options: ListOptions) => watched(terminal, options, (page) => list(page, options)));
}

async function list(terminal: Terminal, options: ListOptions): Promise<void> {
  await using client = await connect(terminal, options);
  const { limit, cursor, output } = options;
  const filter = filterOf(options);
  const page = await client.cluster.jobs({ ...filter, limit, ...(cursor !== undefined && { cursor }) });
  print(terminal, output, page, () =>
    page.items.length === 0 ? `no ${filterText(filter)}` : jobsTable(terminal, page.items),
  );
  sayPartial(terminal, page.nodes);
  if (page.next_cursor !== null && output === "table" && options.watch === undefined) {
    say(terminal, `there are more: --cursor ${page.next_cursor}`);
  }
}

function jobsTable(terminal: Terminal, jobs: readonly JobSummaryBody[]): string {
  const failed = jobs.some(({ error }) => error !== null);
  return table(
    terminal,
    ["job", "task", "queue", "status", "attempts", "created", ...(failed ? ["error"] : [])],
    jobs.map((job) => [
      job.job_id,
      job.task,
      job.queue,
      statusText(terminal, job.status),
      `${job.attempts}/${job.max_attempts}`,
      ago(terminal, job.created_at),
      ...(failed ? [plain(job.error?.message.split("\n", 1)[0] ?? "")] : []),
    ]),
    { cut: "error", spare: ["queue", "attempts", "created"] },
  );
}
