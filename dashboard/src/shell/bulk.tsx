/** One change for many jobs: counts them first, asks, and then shows how far it is. */

import { signal } from "@preact/signals";
import type { AnswerOf, BodyOf } from "../../../src/api/operation-table.ts";
import { call } from "../api/call.ts";
import { asProblem, type Problem } from "../api/problem.ts";
import { barredFrom } from "../api/session.ts";
import { count, plural, shortId } from "../parts/format.ts";
import { ProblemNote } from "../parts/notes.tsx";
import { Dialog } from "./dialog.tsx";

type BulkRequest = BodyOf<"POST /cluster/jobs/bulk">;

export interface Bulk {
  readonly action: BulkRequest["action"];
  /** Which ones, as "failed jobs of queue emails". */
  readonly what: string;
  readonly ids?: readonly string[];
  readonly filter?: BulkRequest["filter"];
  /** Called when something was changed. */
  readonly onDone?: () => void;
}

interface BulkButtonProps extends Bulk {
  readonly label?: string;
  readonly class?: string;
  readonly children: string;
}

export function BulkButton({ label, class: name, children, ...bulk }: BulkButtonProps) {
  const barred = barredFrom("POST /cluster/jobs/bulk");
  return (
    <button
      type="button"
      class={name}
      disabled={barred !== null}
      title={barred ?? undefined}
      aria-label={label}
      onClick={() => openBulk(bulk)}
    >
      {children}
    </button>
  );
}

interface State extends Bulk {
  readonly phase: "counting" | "asking" | "working" | "done";
  readonly total: number;
  readonly handled: number;
  readonly changed: number;
  readonly skippedCount: number;
  readonly skipped: AnswerOf<"POST /cluster/jobs/bulk">["skipped"];
  readonly partial: boolean;
  readonly problem: Problem | null;
}

const PAGE = 500;
const VERBS = {
  retry: ["Retry", "retried", "They go back into their queues with fresh attempts."],
  cancel: [
    "Cancel",
    "cancelled",
    "Those that wait end at once; running ones are asked to stop, and may still finish.",
  ],
  delete: ["Delete", "deleted", "They are removed with their logs and results. This cannot be undone."],
} as const;

const state = signal<State | null>(null);
let stop = new AbortController();

export function openBulk(bulk: Bulk): void {
  const none = { handled: 0, changed: 0, skippedCount: 0, skipped: [], partial: false, problem: null };
  stop = new AbortController();
  state.value = { ...bulk, ...none, phase: "counting", total: 0 };
  void guarded(countAll);
}

function change(part: Partial<State>): void {
  state.value = { ...state.value!, ...part };
}

/** One page after the other; the node does at most one page a call, so that no call takes long. */
async function* pages(dry_run: boolean) {
  const { action, ids, filter = {} } = state.value!;
  const options = { signal: stop.signal, timeoutMs: 60_000 };
  const page = (part: Partial<BulkRequest>) =>
    call("POST /cluster/jobs/bulk", { body: { action, dry_run, ...part } }, options);
  if (ids) {
    for (let at = 0; at < ids.length && !stop.signal.aborted; at += PAGE) {
      yield await page({ ids: ids.slice(at, at + PAGE) });
    }
    return;
  }
  let cursor: string | undefined;
  do {
    const answer = await page({ filter, limit: PAGE, cursor });
    yield answer;
    cursor = answer.next_cursor ?? undefined;
  } while (cursor !== undefined && !stop.signal.aborted);
}

async function countAll(): Promise<void> {
  for await (const { matched, partial } of pages(true)) {
    const before = state.value!;
    change({ total: before.total + matched, partial: before.partial || partial });
  }
  change({ phase: "asking" });
}

async function work(): Promise<void> {
  change({ phase: "working" });
  for await (const answer of pages(false)) {
    const before = state.value!;
    change({
      handled: before.handled + answer.matched,
      changed: before.changed + answer.changed,
      skippedCount: before.skippedCount + answer.skipped_count,
      skipped: [...before.skipped, ...answer.skipped].slice(0, 20),
      partial: before.partial || answer.partial,
    });
  }
  finish();
}

function finish(): void {
  change({ phase: "done" });
  state.value!.onDone?.();
}

async function guarded(run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (!state.value) return;
    if (stop.signal.aborted) return finish();
    change({ problem: asProblem(error) });
    finish();
  }
}

function close(): void {
  stop.abort();
  state.value = null;
}

export function BulkDialog() {
  const now = state.value;
  if (!now) return null;
  const [verb, done, consequence] = VERBS[now.action];
  const number = count(now.total);
  return (
    <Dialog title={`${verb} ${now.what}`} onClose={now.phase === "working" ? () => stop.abort() : close}>
      <div class="dialog-body" aria-live="polite">
        {now.phase === "counting" && <p>Counting: {number} so far …</p>}
        {now.phase === "asking" && now.total === 0 && <p>There are none any more.</p>}
        {now.phase === "asking" && now.total > 0 && (
          <p>
            This is about <strong class="num">{plural(now.total, "job")}</strong>. {consequence}
          </p>
        )}
        {(now.phase === "working" || now.phase === "done") && (
          <>
            <progress max={Math.max(now.total, now.handled, 1)} value={now.handled} aria-label="Progress" />
            <p>
              <strong class="num">{plural(now.changed, "job")}</strong> {done}
              {now.phase === "working" ? `, of ${number} …` : "."}
              {now.skippedCount > 0 && ` ${plural(now.skippedCount, "job")} left as they were:`}
            </p>
            <Skipped jobs={now.skipped} />
          </>
        )}
        {now.partial && <p>Some nodes did not answer; their jobs are not among them.</p>}
        {now.problem && <ProblemNote problem={now.problem} />}
      </div>
      <div class="row end">
        {now.phase === "working" ? (
          <button type="button" onClick={() => stop.abort()}>
            Stop here
          </button>
        ) : (
          <button type="button" onClick={close}>
            {now.phase === "done" || now.total === 0 ? "Close" : "Cancel"}
          </button>
        )}
        {now.phase === "asking" && now.total > 0 && (
          <button
            type="button"
            class={now.action === "retry" ? "primary" : "danger"}
            onClick={() => void guarded(work)}
          >
            {verb} {plural(now.total, "job")}
          </button>
        )}
      </div>
    </Dialog>
  );
}

function Skipped({ jobs }: { jobs: State["skipped"] }) {
  if (jobs.length === 0) return null;
  return (
    <ul class="skipped">
      {jobs.map(({ job_id, why }) => (
        <li key={job_id}>
          <span class="mono" title={job_id}>
            {shortId(job_id)}
          </span>
          : {why}
        </li>
      ))}
    </ul>
  );
}
