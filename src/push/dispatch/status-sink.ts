/**
 * Delivers a worker's results under push dispatch to the owner of the assignment, which stores them and sends a receipt. It replaces
 * `record` of the store, with the same guarantee: a resolved call is stored.
 *
 *   record ──by assignment──> status queue ──> owner ──> store
 *     ^                                          |
 *     '── verdicts <── receipt (topic) <─────────'
 *     '── verdicts <── the store itself, when no receipt came in time
 *
 * Bypassing the owner is safe: the store compares epoch and lease of the run for every writer, and refuses the second of two settlements
 * as well as logs of a run that has ended.
 */

import type { Channels, Subscription } from "../../channels/channels.ts";
import type { Receipt, StatusReport } from "../../channels/messages.ts";
import { queues, topics } from "../../channels/channel-names.ts";
import type { Platform } from "../../platform/platform.ts";
import { within } from "../../platform/loop.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { AssignmentId } from "../../store/ownership.ts";
import { recordRuns } from "../../jobs/run/run-writes.ts";
import type { ResultPort } from "../../jobs/run/worker-ports.ts";
import type { Recorded, Report, Run, RunBatch, Settlement, Store, Verdict } from "../../store/store.ts";

export interface StatusSinkOptions {
  readonly store: Pick<Store, "jobs">;
  readonly channels: Pick<Channels, "send" | "publish" | "subscribe">;
  /** How long an owner has. Shorter, and an owner that is only busy has its work done twice. */
  readonly receiptMs: number;
}

/** More than an owner takes when all is well: results of others do not wait longer for one whose owner is silent. */
const PATIENCE_MS = 50;
/** What is left for an owner when the worker is about to stop. */
const HURRIED_RECEIPT_MS = 500;
/** Without a sign of its owner, results of an assignment go past it for so long. */
const SILENT_MS = 60_000;

/** What concerns one assignment; null for jobs that were not dispatched. */
interface Part extends RunBatch {
  readonly assignment: AssignmentId | null;
}

export class StatusSink extends Lifecycle implements ResultPort {
  readonly patienceMs = PATIENCE_MS;
  readonly #o: Platform & StatusSinkOptions;
  /** Receipts that are awaited, by number. */
  readonly #awaited = new Map<number, (receipt: Receipt | undefined) => void>();
  #receiptMs: number;
  #hurried = new AbortController();
  /** Assignments whose owner was silent, and until when they go past it. */
  readonly #silent = new Map<AssignmentId, number>();
  /** Reports that no owner has confirmed, of runs that have not ended. */
  readonly #unconfirmed = new Map<AssignmentId, Report[]>();
  /** Reports that are stored. When another part of their batch fails, they come again and are not stored twice. */
  readonly #stored = new WeakSet<Report>();
  #subscription: Subscription | null = null;
  #number = 0;

  constructor(platform: Platform, options: StatusSinkOptions) {
    super();
    this.#o = { ...platform, ...options };
    this.#receiptMs = options.receiptMs;
  }

  protected onStart(): void {
    const { channels, identity, receiptMs } = this.#o;
    this.#receiptMs = receiptMs;
    this.#hurried = new AbortController();
    this.#subscription = channels.subscribe(topics.receipts(identity.name), ({ body }) => {
      const receipt = body as Receipt;
      if (receipt.incarnation === identity.incarnation) this.#awaited.get(receipt.number)?.(receipt);
    });
  }

  protected async onStop(): Promise<void> {
    for (const resolve of this.#awaited.values()) resolve(undefined);
    await this.#subscription?.close();
  }

  /** The worker is about to stop: owners have less time, also those who were asked before. */
  hurry(): void {
    this.#receiptMs = Math.min(this.#receiptMs, HURRIED_RECEIPT_MS);
    this.#hurried.abort();
  }

  async record({ reports, settlements }: RunBatch): Promise<Recorded> {
    const fresh = new Set(reports.filter((report) => !this.#stored.has(report)));
    const reportsOf = Map.groupBy(fresh, assignmentOf);
    const settlementsOf = Map.groupBy(settlements, assignmentOf);
    const assignments = new Set([...reportsOf.keys(), ...settlementsOf.keys()]);
    /** By assignment, each in the order of its part. */
    const verdicts = new Map<AssignmentId | null, { reported: Verdicts; settled: Verdicts }>();
    const writing = [...assignments].map(async (assignment) => {
      const of = {
        reports: reportsOf.get(assignment) ?? [],
        settlements: settlementsOf.get(assignment) ?? [],
      };
      const { reported, settled } = await this.#send({ assignment, ...of });
      for (const report of of.reports) this.#stored.add(report);
      verdicts.set(assignment, { reported: reported.values(), settled: settled.values() });
    });
    await Promise.all(writing);
    const settled = settlements.map((each) => verdicts.get(assignmentOf(each))!.settled.next().value!);
    const reported = reports.map((each): Verdict =>
      fresh.has(each) ? verdicts.get(assignmentOf(each))!.reported.next().value! : "accepted",
    );
    this.#tellReady(settlements, settled);
    return { reported, settled };
  }

  #send(part: Part): Promise<Recorded> {
    const { assignment } = part;
    return assignment === null || this.#silent.has(assignment)
      ? this.#past(part)
      : this.#ask(assignment, part);
  }

  async #ask(assignment: AssignmentId, part: Part): Promise<Recorded> {
    const { identity, clock, log } = this.#o;
    const number = ++this.#number;
    const body: StatusReport = {
      assignment,
      worker: identity.name,
      incarnation: identity.incarnation,
      number,
      reports: part.reports.map((report) => ({ ...report, run: slim(report.run) })),
      settlements: part.settlements.map(({ run, outcome }) => ({ run: slim(run), outcome })),
    };
    const { reported, settled } = (await this.#receiptFor(body)) ?? { reported: [], settled: [] };
    if (reported.length === part.reports.length && settled.length === part.settlements.length) {
      this.#silent.delete(assignment);
      // Of one worker everything comes to the owner in order, so what went before is stored as well.
      this.#unconfirmed.delete(assignment);
      return { reported, settled };
    }
    if (!this.#silent.has(assignment))
      log.warn(
        { assignment, results: part.settlements.length },
        "no receipt of an owner; the store is asked",
      );
    this.#noteSilent(assignment, clock.monotonic());
    if (part.settlements.length > 0) return this.#past(part);
    // The runs go on, and an owner may yet write it: said twice, it would stand there twice.
    this.#unconfirmed.set(assignment, [...(this.#unconfirmed.get(assignment) ?? []), ...part.reports]);
    return { reported: part.reports.map(() => "accepted"), settled: [] };
  }

  /** Undefined when none came in time, or the report could not be sent. */
  async #receiptFor(body: StatusReport): Promise<Receipt | undefined> {
    const { channels, clock } = this.#o;
    const since = clock.monotonic();
    const { promise, resolve } = Promise.withResolvers<Receipt | undefined>();
    this.#awaited.set(body.number, resolve);
    channels
      .send(queues.jobStatus(body.assignment), [{ key: body.incarnation, body }])
      .catch(() => resolve(undefined));
    const receipt = await within(clock, this.#receiptMs, promise, this.#hurried.signal);
    // A hurry has ended that wait: what is left of the shorter one.
    const leftMs = since + this.#receiptMs - clock.monotonic();
    const late = receipt ?? (leftMs > 0 ? await within(clock, leftMs, promise) : undefined);
    this.#awaited.delete(body.number);
    return late;
  }

  async #past({ assignment, reports, settlements }: Part): Promise<Recorded> {
    const earlier = this.#earlier(assignment, settlements);
    const batch = { reports: [...earlier, ...reports], settlements };
    const { reported, settled } = await recordRuns(this.#o, batch);
    return { reported: reported.slice(earlier.length), settled };
  }

  /** What these runs reported before their end, and no owner has confirmed. */
  #earlier(assignment: AssignmentId | null, settlements: readonly Settlement[]): Report[] {
    const unconfirmed = assignment === null ? undefined : this.#unconfirmed.get(assignment);
    if (!unconfirmed) return [];
    const ending = new Set(settlements.map(({ run }) => run.id));
    const parts = Map.groupBy(unconfirmed, ({ run }) => ending.has(run.id));
    const rest = parts.get(false);
    if (rest) this.#unconfirmed.set(assignment!, rest);
    else this.#unconfirmed.delete(assignment!);
    return parts.get(true) ?? [];
  }

  #noteSilent(assignment: AssignmentId, now: number): void {
    // In the order of their ends: the first that lasts is followed by others that do.
    for (const [known, until] of this.#silent) {
      if (until > now) break;
      this.#silent.delete(known);
    }
    this.#silent.delete(assignment);
    this.#silent.set(assignment, now + SILENT_MS);
  }

  /** A job that went back to the queue is the leader's again, and only this message informs it: the worker learns of no next job by itself. */
  #tellReady(settlements: readonly Settlement[], verdicts: readonly Verdict[]): void {
    const back = settlements.some(({ outcome }, i) => {
      return verdicts[i] === "accepted" && ["retry", "interrupted", "released"].includes(outcome.kind);
    });
    if (!back || !this.running) return;
    void this.#o.channels.publish(topics.jobsReady, [{ key: "", body: null }]).catch(() => {}); // the leader looks by itself
  }
}

type Verdicts = ArrayIterator<Verdict>;

function assignmentOf({ run }: { readonly run: Run & { readonly assignment?: AssignmentId } }) {
  return run.assignment ?? null;
}

/** What a run is known by: the rest of a claimed job stays here. */
function slim({ id, jobEpoch, lease, ref }: Run): Run {
  return ref === undefined ? { id, jobEpoch, lease } : { id, jobEpoch, lease, ref };
}
