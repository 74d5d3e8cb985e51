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

export interface BulkRequest {
  readonly action: BulkAction;
  /** Each is gone through by itself; the sets do not overlap. */
  readonly filters: readonly NonNullable<BodyOf<"POST /cluster/jobs/bulk">["filter"]>[];
  readonly what: string;
  readonly reason?: string | undefined;
}

export interface BulkOptions extends NodeOptions, ConfirmOptions {
  readonly dryRun?: boolean;
}

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
  const counting = { label: "counting", total: null, counts: true };
  const { matched, more } = await walked(terminal, client, request, counting);
  const amount = `${more ? "more than " : ""}${count(matched)} ${matched === 1 ? what.replace(/\bjobs\b/, "job") : what}`;
  if (options.dryRun || matched === 0) {
    print(terminal, options.output, { action, matched, more, dry_run: true }, () =>
      matched === 0 ? `no ${what}` : `${amount} would be ${DOING[action][1]}`,
    );
    return;
  }
  await confirm(terminal, options, questionOf(action, amount), { many: true });
  const changing = { label: DOING[action][0], total: more ? null : matched, counts: false };
  const totals = await walked(terminal, client, request, changing);
  const { changed: done, skippedCount, skipped, partial } = totals;
  const answer = { action, matched: totals.matched, changed: done, skipped_count: skippedCount, skipped };
  const left = skippedCount > 0 ? `, ${count(skippedCount)} left as they are` : "";
  print(terminal, options.output, answer, () => `${several(done, "job")} ${DOING[action][1]}${left}`);
  if (options.output === "table") {
    for (const { job_id, why } of skipped) say(terminal, `  ${job_id}: ${plain(why)}`);
    if (skippedCount > skipped.length) say(terminal, `  and ${count(skippedCount - skipped.length)} more`);
  }
  const missing =
    "some nodes could not be reached: jobs that only they have are as they were; repeat it later";
  if (partial) say(terminal, missing);
}

export function questionOf(action: BulkAction, what: string): string {
  return `${action[0]!.toUpperCase()}${action.slice(1)} ${what}?`;
}

async function walked(
  terminal: Terminal,
  client: BatonClient,
  { action, filters, reason }: BulkRequest,
  how: { readonly label: string; readonly total: number | null; readonly counts: boolean },
) {
  const bar = new ProgressBar(terminal, how.label);
  const skipped: BulkPage["skipped"] = [];
  const totals = { matched: 0, changed: 0, skippedCount: 0, skipped, partial: false, more: false };
  const limits = how.counts ? { dry_run: true, limit: COUNT_PAGE } : { limit: PAGE, reason };
  try {
    for (const filter of filters) {
      let cursor: string | undefined;
      do {
        const page: BulkPage = await client.cluster.bulk({ action, filter, ...limits, cursor });
        totals.matched += page.matched;
        totals.changed += page.changed;
        totals.skippedCount += page.skipped_count;
        totals.partial ||= page.partial;
        skipped.push(...page.skipped.slice(0, EXAMPLES_MAX - skipped.length));
        bar.show(totals.matched, how.total === null ? null : Math.max(how.total, totals.matched));
        cursor = page.next_cursor ?? undefined;
        totals.more = how.counts && totals.matched >= COUNT_MAX && cursor !== undefined;
      } while (cursor !== undefined && !totals.more);
      if (totals.more) break;
    }
    return totals;
  } finally {
    bar.clear();
  }
}
