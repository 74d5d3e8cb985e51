/** `baton jobs failures`: failed jobs grouped by error, and a retry for a whole group. */

import type { Command } from "commander";
import { InvalidArgumentError } from "commander";
import type { BulkOptions } from "./bulk-change.ts";
import { changeMany } from "./bulk-change.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { ago, count } from "../../core/figures.ts";
import type { AnswerOf } from "../../api/operation-table.ts";
import { timeOrAge } from "./job-filter.ts";
import { connect, wholeNumber, withNodeOptions, withYes } from "../node-options.ts";
import { print, table } from "../terminal/output.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { say } from "../terminal/terminal.ts";

interface FailuresOptions extends BulkOptions {
  readonly since?: string;
  readonly queue?: string;
  readonly task?: string;
  readonly limit: number;
  /** All, or the numbers of some. */
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
    ...(since !== undefined && { since }),
    ...(queue !== undefined && { queue }),
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
