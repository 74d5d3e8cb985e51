/** Options that select jobs, for lists and for changes to many jobs. */

import { type Command, InvalidArgumentError, Option } from "commander";
import { parseDuration } from "../../config/values/units.ts";
import { JOB_STATUSES } from "../../core/jobs/job.ts";
import { FILTER_FIELDS, filtersIn, type FieldFilters } from "../../core/jobs/job-fields.ts";
import { instant } from "../node-options.ts";
import type { Terminal } from "../terminal/terminal.ts";

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
  return {
    ...(status !== undefined && { status }),
    ...filtersIn(options),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  };
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
