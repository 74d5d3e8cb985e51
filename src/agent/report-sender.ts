/**
 * Collects the logs and the progress of all runs for a short time and posts them job by job, each in order. While no
 * leader accepts them they wait in memory; beyond a limit the oldest lines are dropped.
 */

import type { LogsRequest } from "../client/controller-calls.ts";
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

export class ReportSender {
  readonly #link: LinkContext;
  readonly #leases: LeaseRenewer;
  /** What is not posted by then is dropped. */
  readonly #over: AbortSignal;
  readonly #piles = new Map<string, Pile>();

  constructor(link: LinkContext, leases: LeaseRenewer, over: AbortSignal) {
    this.#link = link;
    this.#leases = leases;
    this.#over = over;
  }

  add(run: Run, { logs, progress }: Omit<Report, "run">): void {
    const pile = this.#pile(run);
    pile.lines.push(...logs);
    if (pile.lines.length > WAITING_LINES_MAX) pile.lines.splice(0, pile.lines.length - WAITING_LINES_MAX);
    pile.progress = progress ?? pile.progress;
    if (pile.posting || pile.cancelPost) return;
    pile.cancelPost = this.#link.platform.clock.after(GATHER_MS, () => void this.#post(pile));
  }

  /** Resolves once all that was said of this run is posted, or refused. */
  async empty(run: Run): Promise<void> {
    const pile = this.#piles.get(keyOf(run));
    if (!pile) return;
    await this.#post(pile);
    this.forget(run);
  }

  forget(run: Run): void {
    this.#piles.get(keyOf(run))?.cancelPost?.();
    this.#piles.delete(keyOf(run));
  }

  #pile(run: Run): Pile {
    const key = keyOf(run);
    const pile = this.#piles.get(key) ?? { run, lines: [], progress: null, posting: null, cancelPost: null };
    this.#piles.set(key, pile);
    return pile;
  }

  #post(pile: Pile): Promise<void> {
    pile.cancelPost?.();
    pile.cancelPost = null;
    pile.posting ??= this.#postAll(pile).finally(() => (pile.posting = null));
    return pile.posting;
  }

  async #postAll(pile: Pile): Promise<void> {
    const backoff = this.#link.leader.backoff();
    while ((pile.lines.length > 0 || pile.progress) && !this.#over.aborted) {
      const lines = firstOf(pile.lines);
      const { progress } = pile;
      try {
        if (!(await this.#send(pile.run, lines, progress))) return this.forget(pile.run);
        pile.lines.splice(0, lines.length);
        if (pile.progress === progress) pile.progress = null;
        backoff.reset();
      } catch {
        await this.#link.platform.clock.sleep(backoff.next(), this.#over);
      }
    }
  }

  /** False when nobody will ever take them: the run is not the job's any more. Rejects when it is worth another try. */
  async #send(run: Run, lines: readonly NewLogLine[], progress: Report["progress"]): Promise<boolean> {
    const lease = this.#leases.get(run.lease);
    if (!lease || lease.over) return false;
    await this.#leases.renewOld([run.lease]);
    const { epoch } = lease;
    const request: LogsRequest = {
      lease_id: run.lease,
      job_id: run.id,
      job_epoch: run.jobEpoch,
      leader_epoch: epoch,
      lines: lines.map(({ at, level, message }) => ({ at: new Date(at).toISOString(), level, message })),
      ...(progress && { progress: { percent: progress.value, message: progress.message ?? undefined } }),
    };
    const options = { timeoutMs: CALL_TIMEOUT_MS, signal: this.#over, moves: true };
    const body = (): string => JSON.stringify(request);
    const { status, json } = await this.#link.leader.postToLeader("/v1/logs", body, options);
    if (status === 200) return true;
    const { error, message } = (json ?? {}) as Partial<Record<string, unknown>>;
    if (error === "STALE_EPOCH")
      return (await this.#leases.hasNewEpoch(run.lease, epoch)) && this.#send(run, lines, progress);
    const fields = { jobId: run.id, status, error, message };
    this.#link.platform.log.warn(fields, "log lines of a job were refused and are dropped");
    return true;
  }
}

function firstOf(lines: readonly NewLogLine[]): NewLogLine[] {
  let length = 0;
  const tooMany = lines.findIndex(
    ({ message }, at) => at === LINES_MAX || (length += message.length) > LENGTH_MAX,
  );
  // A single line is never that long: it was cut when it was logged.
  return lines.slice(0, tooMany < 0 ? lines.length : tooMany);
}

function keyOf({ lease, id }: Run): string {
  return `${lease} ${id}`;
}
