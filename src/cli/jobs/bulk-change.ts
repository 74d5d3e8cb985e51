/** Changes many jobs, page by page: counts and confirms first, and shows a progress bar. */

import type { BatonClient } from "../../client/baton-client.ts";
import { confirm, type ConfirmOptions, type NodeOptions } from "../node-options.ts";
import { count, several } from "../../core/format-figures.ts";
import type { AnswerOf, BodyOf } from "../../api/operation-table.ts";
import { print } from "../terminal/output.ts";
import { plain } from "../terminal/plain-text.ts";
import { ProgressBar } from "../terminal/progress-bar.ts";
import { say, type Terminal } from "../terminal/terminal.ts";

export type BulkAction = "retry" | "cancel" | "delete";

type BulkPage = AnswerOf<"POST /cluster/jobs/bulk">;

type BulkBody = BodyOf<"POST /cluster/jobs/bulk">;

export interface BulkRequest {
  readonly action: BulkAction;
  /** Each is gone through by itself; the sets do not overlap. */
  readonly filters: readonly NonNullable<BulkBody["filter"]>[];
  readonly what: string;
  readonly reason?: string | undefined;
}

export interface BulkOptions extends NodeOptions, ConfirmOptions {
  readonly dryRun?: boolean;
}

/** As many as a node changes in one go. */
const PAGE = 500;
const COUNT_PAGE = 1_000;
/** Counting further takes longer than whoever is asked wants to wait; "more than" says enough. */
const COUNT_MAX = 100_000;
const EXAMPLES_MAX = 20;

const DOING: Readonly<Record<BulkAction, readonly [now: string, done: string]>> = {
  retry: ["retrying", "retried"],
  cancel: ["cancelling", "cancelled"],
  delete: ["deleting", "deleted"],
};

export async function changeMany(
  terminal: Terminal,
  client: BatonClient,
  request: BulkRequest,
  options: BulkOptions,
): Promise<void> {
  const { action, what } = request;
  const { matched, more } = await counted(terminal, client, request);
  const amount = `${more ? "more than " : ""}${count(matched)} ${matched === 1 ? what.replace(/\bjobs\b/, "job") : what}`;
  if (options.dryRun || matched === 0) {
    print(terminal, options.output, { action, matched, more, dry_run: true }, () =>
      matched === 0 ? `no ${what}` : `${amount} would be ${DOING[action][1]}`,
    );
    return;
  }
  await confirm(terminal, options, questionOf(action, amount), { many: true });
  const totals = await changed(terminal, client, request, more ? null : matched);
  const { matched: seen, changed: done, skipped, examples, partial } = totals;
  const answer = { action, matched: seen, changed: done, skipped_count: skipped, skipped: examples };
  const left = skipped > 0 ? `, ${count(skipped)} left as they are` : "";
  print(terminal, options.output, answer, () => `${several(done, "job")} ${DOING[action][1]}${left}`);
  if (options.output === "table") {
    for (const { job_id, why } of examples) say(terminal, `  ${job_id}: ${plain(why)}`);
    if (skipped > examples.length) say(terminal, `  and ${count(skipped - examples.length)} more`);
  }
  const missing =
    "some nodes could not be reached: jobs that only they have are as they were; repeat it later";
  if (partial) say(terminal, missing);
}

export function questionOf(action: BulkAction, what: string): string {
  return `${action[0]!.toUpperCase()}${action.slice(1)} ${what}?`;
}

async function counted(
  terminal: Terminal,
  client: BatonClient,
  { action, filters }: BulkRequest,
): Promise<{ matched: number; more: boolean }> {
  const bar = new ProgressBar(terminal, "counting");
  let matched = 0;
  try {
    for (const filter of filters) {
      for await (const page of pages(client, { action, filter, dry_run: true, limit: COUNT_PAGE })) {
        matched += page.matched;
        bar.show(matched, null);
        if (matched >= COUNT_MAX && page.next_cursor !== null) return { matched, more: true };
      }
    }
    return { matched, more: false };
  } finally {
    bar.clear();
  }
}

async function changed(
  terminal: Terminal,
  client: BatonClient,
  { action, filters, reason }: BulkRequest,
  total: number | null,
) {
  const bar = new ProgressBar(terminal, DOING[action][0]);
  const examples: BulkPage["skipped"] = [];
  const totals = { matched: 0, changed: 0, skipped: 0, examples, partial: false };
  try {
    for (const filter of filters) {
      for await (const page of pages(client, { action, filter, limit: PAGE, reason })) {
        totals.matched += page.matched;
        totals.changed += page.changed;
        totals.skipped += page.skipped_count;
        totals.partial ||= page.partial;
        examples.push(...page.skipped.slice(0, EXAMPLES_MAX - examples.length));
        bar.show(totals.matched, total === null ? null : Math.max(total, totals.matched));
      }
    }
    return totals;
  } finally {
    bar.clear();
  }
}

async function* pages(client: BatonClient, body: BulkBody): AsyncGenerator<BulkPage> {
  let cursor: string | undefined;
  do {
    const page: BulkPage = await client.cluster.bulk({ ...body, cursor });
    yield page;
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
}
