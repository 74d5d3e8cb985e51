/**
 * Collects the logs and the progress of all runs for a short time and posts them job by job, each in order. While no
 * leader accepts them they wait in memory; beyond a limit the oldest lines are dropped.
 */

import type { LogsRequest } from "../client/controller-calls.ts";
import { split } from "../platform/loop.ts";
import type { NewLogLine, Report, Run } from "../store/store.ts";
import type { LeaseRenewer } from "./lease-renewer.ts";
import type { LinkContext } from "./link-messages.ts";

interface Pile {
  readonly run: Run;
  lines: NewLogLine[];
  progress: Report["progress"];
  posting: Promise<void> | null;
  cancelPost: (() => void) | null;
}

/** How long lines and progress gather. Shorter, and a talkative handler costs a request a line. */
const GATHER_MS = 200;
/** Lines of one request, and their characters: what a node takes by default even if each of these is three bytes. */
const LINES_MAX = 500;
const LENGTH_MAX = 256 * 1_024;
/** Lines that wait while nobody takes them; the oldest are dropped. More, and a long outage fills the memory. */
const WAITING_LINES_MAX = 10_000;
const CALL_TIMEOUT_MS = 5_000;

export type ReportSender = ReturnType<typeof reportSender>;

/** `over`: what is not posted by then is dropped. */
export function reportSender({ platform, leader }: LinkContext, leases: LeaseRenewer, over: AbortSignal) {
  const { clock, log } = platform;
  const piles = new Map<string, Pile>();

  const pileOf = (run: Run): Pile => {
    const key = keyOf(run);
    const pile = piles.get(key) ?? { run, lines: [], progress: null, posting: null, cancelPost: null };
    piles.set(key, pile);
    return pile;
  };

  const forget = (run: Run): void => {
    piles.get(keyOf(run))?.cancelPost?.();
    piles.delete(keyOf(run));
  };

  const post = (pile: Pile): Promise<void> => {
    pile.cancelPost?.();
    pile.cancelPost = null;
    pile.posting ??= postAll(pile).finally(() => (pile.posting = null));
    return pile.posting;
  };

  const postAll = async (pile: Pile): Promise<void> => {
    const backoff = leader.backoff();
    while ((pile.lines.length > 0 || pile.progress) && !over.aborted) {
      const lines = firstOf(pile.lines);
      const { progress } = pile;
      try {
        if (!(await send(pile.run, lines, progress))) return forget(pile.run);
        pile.lines.splice(0, lines.length);
        if (pile.progress === progress) pile.progress = null;
        backoff.reset();
      } catch {
        await clock.sleep(backoff.next(), over);
      }
    }
  };

  /** False when nobody will ever take them: the run is not the job's any more. Rejects when it is worth another try. */
  const send = async (
    run: Run,
    lines: readonly NewLogLine[],
    progress: Report["progress"],
  ): Promise<boolean> => {
    const lease = leases.get(run.lease);
    if (!lease || lease.over) return false;
    await leases.renewOld([run.lease]);
    const { epoch } = lease;
    const request: LogsRequest = {
      lease_id: run.lease,
      job_id: run.id,
      job_epoch: run.jobEpoch,
      leader_epoch: epoch,
      lines: lines.map(({ at, level, message }) => ({ at: new Date(at).toISOString(), level, message })),
      ...(progress && { progress: { percent: progress.value, message: progress.message ?? undefined } }),
    };
    const options = { timeoutMs: CALL_TIMEOUT_MS, signal: over, moves: true };
    const { status, json } = await leader.postToLeader("/v1/logs", () => JSON.stringify(request), options);
    if (status === 200) return true;
    const { error, message } = (json ?? {}) as Partial<Record<string, unknown>>;
    if (error === "STALE_EPOCH")
      return (await leases.hasNewEpoch(run.lease, epoch)) && send(run, lines, progress);
    const fields = { jobId: run.id, status, error, message };
    log.warn(fields, "log lines of a job were refused and are dropped");
    return true;
  };

  return {
    forget,

    add(run: Run, { logs, progress }: Omit<Report, "run">): void {
      const pile = pileOf(run);
      pile.lines.push(...logs);
      if (pile.lines.length > WAITING_LINES_MAX) pile.lines.splice(0, pile.lines.length - WAITING_LINES_MAX);
      pile.progress = progress ?? pile.progress;
      if (pile.posting || pile.cancelPost) return;
      pile.cancelPost = clock.after(GATHER_MS, () => void post(pile));
    },

    /** Resolves once all that was said of this run is posted, or refused. */
    async empty(run: Run): Promise<void> {
      const pile = piles.get(keyOf(run));
      if (!pile) return;
      await post(pile);
      forget(run);
    },
  };
}

/** The first lines that fit into one request. A single line always fits: it was cut when it was logged. */
function firstOf(lines: readonly NewLogLine[]): readonly NewLogLine[] {
  return split(lines, LINES_MAX, ({ message }) => message.length, LENGTH_MAX)[0] ?? [];
}

function keyOf({ lease, id }: Run): string {
  return `${lease} ${id}`;
}
