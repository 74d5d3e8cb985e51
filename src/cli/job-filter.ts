/** Options that pick jobs, for lists and for what is done to many. */

import type { Command } from "commander";
import { InvalidArgumentError, Option } from "commander";
import { parseDuration } from "../config/duration.ts";
import { JOB_STATUSES } from "../core/job.ts";
import { instant } from "./node-options.ts";
import type { Terminal } from "./terminal.ts";

export interface JobFilter {
  readonly status?: (typeof JOB_STATUSES)[number];
  readonly queue?: string;
  readonly task?: string;
  readonly since?: string;
  readonly until?: string;
}

export function withJobFilter(command: Command, terminal: Terminal): Command {
  const times = "2026-01-31T09:00:00Z, or 1h for an hour ago";
  return command
    .addOption(new Option("--status <status>", "only jobs in this state").choices(JOB_STATUSES))
    .option("--queue <queue>", "only jobs of this queue")
    .option("--task <task>", "only jobs of this task")
    .option("--since <time>", `only jobs created since: ${times}`, timeOrAge(terminal))
    .option("--until <time>", "only jobs created before", timeOrAge(terminal));
}

export function filterOf({ status, queue, task, since, until }: JobFilter): JobFilter {
  return {
    ...(status !== undefined && { status }),
    ...(queue !== undefined && { queue }),
    ...(task !== undefined && { task }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  };
}

/** "failed jobs of task resize since …" */
export function filterText({ status, queue, task, since, until }: JobFilter): string {
  return [
    status ?? "",
    "jobs",
    task === undefined ? "" : `of task ${task}`,
    queue === undefined ? "" : `in queue ${queue}`,
    since === undefined ? "" : `since ${since}`,
    until === undefined ? "" : `until ${until}`,
  ]
    .filter((part) => part !== "")
    .join(" ");
}

/** A time, or how long ago. */
export function timeOrAge(terminal: Terminal): (text: string) => string {
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
