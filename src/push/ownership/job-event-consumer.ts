/**
 * Writes the reports of workers for owned assignments under the owner's epoch, sends receipts, then acknowledges the message. One that
 * was written but not acknowledged is delivered again, and the store answers "replayed".
 */

import type { Delivery, Subscription } from "../../channels/channels.ts";
import type { Receipt, StatusReport } from "../../channels/messages.ts";
import { queues, topics } from "../../channels/channel-names.ts";
import { BatonError } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import { Batcher } from "../../platform/batcher.ts";
import type { AssignmentId } from "../../store/ownership.ts";
import type { Recorded, Verdict } from "../../store/store.ts";
import type { JobEventWriter } from "./job-event-writer.ts";
import type { OwnedAssignment, OwnershipListener } from "./owned-assignments.ts";
import type { OwnerContext } from "./owner-context.ts";

interface OutgoingReceipt {
  readonly worker: NodeName;
  readonly receipt: Receipt;
}

/** Messages of one assignment that are handled together. A message has all that a worker reported in one turn. */
const MESSAGES_MAX = 50;

export class JobEventConsumer implements OwnershipListener {
  readonly #o: OwnerContext;
  readonly #writer: JobEventWriter;
  readonly #receipts: Batcher<OutgoingReceipt, void>;
  readonly #subscriptions = new Map<OwnedAssignment, Subscription>();

  constructor(context: OwnerContext, writer: JobEventWriter) {
    this.#o = context;
    this.#writer = writer;
    this.#receipts = new Batcher({ clock: context.clock, flush: (batch) => this.#publish(batch) });
  }

  taken(owned: OwnedAssignment): void {
    const { assignment } = owned;
    const subscription = this.#o.channels.consume(
      queues.jobStatus(assignment),
      (batch) => this.#handle(assignment, batch),
      // In order: a result must not overtake the logs before it.
      { batchMax: MESSAGES_MAX, exclusive: true },
    );
    this.#subscriptions.set(owned, subscription);
  }

  /** The channels report a failed close, and repair it. */
  async ended(owned: OwnedAssignment): Promise<void> {
    const subscription = this.#subscriptions.get(owned);
    this.#subscriptions.delete(owned);
    await subscription?.close().catch(() => {});
  }

  async #handle(assignment: AssignmentId, batch: readonly Delivery[]): Promise<void> {
    const owned = this.#o.owned.get(assignment);
    if (!owned) throw notOurs(assignment);
    const messages = batch
      .map((delivery) => delivery.body)
      .filter((body) => this.#readable(body, assignment));
    if (messages.length === 0) return;
    owned.writing++;
    owned.events++;
    try {
      const verdicts = await this.#write(owned, messages);
      await this.#acknowledge(messages, verdicts);
    } finally {
      owned.writing--;
    }
    this.#o.owned.written(owned);
  }

  async #write(owned: OwnedAssignment, messages: readonly StatusReport[]): Promise<Recorded> {
    const { assignment, ownerEpoch } = owned;
    const reports = messages.flatMap((message) => message.reports);
    const settlements = messages.flatMap((message) => message.settlements);
    const verdicts = await this.#writer.write({ assignment, ownerEpoch, reports, settlements });
    if (!verdicts) {
      // Unless we have taken it again meanwhile: then the next delivery is written under the new epoch.
      if (owned.ownerEpoch === ownerEpoch) this.#o.owned.end(owned, "lost");
      throw notOurs(assignment);
    }
    const accepted = verdicts.settled.filter((verdict) => verdict === "accepted").length;
    // The others may be counted already or not. Too many are found out when it is quiet; too few would be forgotten.
    this.#o.owned.left(owned, accepted);
    return verdicts;
  }

  /** A lost receipt costs a worker some time: it writes to the store itself, and learns that the result is there. */
  async #acknowledge(messages: readonly StatusReport[], verdicts: Recorded): Promise<void> {
    const reported = cutter(verdicts.reported);
    const settled = cutter(verdicts.settled);
    const sent = messages.map(({ worker, incarnation, number, reports, settlements }) => {
      const receipt: Receipt = {
        incarnation,
        number,
        reported: reported(reports.length),
        settled: settled(settlements.length),
      };
      return this.#receipts.add({ worker, receipt });
    });
    await Promise.all(sent);
  }

  async #publish(batch: readonly OutgoingReceipt[]): Promise<void> {
    const { channels, log } = this.#o;
    const publishing = [...Map.groupBy(batch, ({ worker }) => worker)].map(([worker, receipts]) => {
      const messages = receipts.map(({ receipt }) => ({ key: receipt.incarnation, body: receipt }));
      return channels.publish(topics.receipts(worker), messages).catch((err: unknown) => {
        log.debug({ err, worker, receipts: messages.length }, "receipts may not have been heard");
      });
    });
    await Promise.all(publishing);
  }

  /** A malformed report is logged and dropped: it would be delivered for ever. */
  #readable(body: unknown, assignment: AssignmentId): body is StatusReport {
    const report = body as Partial<StatusReport> | null;
    const readable =
      typeof report === "object" &&
      report !== null &&
      report.assignment === assignment &&
      typeof report.worker === "string" &&
      Array.isArray(report.reports) &&
      Array.isArray(report.settlements);
    if (!readable) this.#o.log.error({ assignment }, "a report of a worker is not readable; it is dropped");
    return readable;
  }
}

function notOurs(assignment: AssignmentId): BatonError {
  return new BatonError(
    "STALE_EPOCH",
    `assignment ${assignment} is not ours any more; its next owner handles this`,
    { assignment },
  );
}

function cutter(verdicts: readonly Verdict[]): (count: number) => readonly Verdict[] {
  let next = 0;
  return (count) => verdicts.slice(next, (next += count));
}
