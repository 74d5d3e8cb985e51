/**
 * Writes the events of all assignments together, at once when idle. While the store is unavailable, events are kept and tried again, not
 * returned to their queue, where others could overtake them.
 */

import { emitRecorded } from "../../jobs/run/run-writes.ts";
import { Batcher } from "../../platform/batcher.ts";
import type { OwnedBatch } from "../../store/ownership.ts";
import type { Recorded } from "../../store/store.ts";
import { isTransient, type OwnerContext } from "./owner-context.ts";

type WriterContext = Pick<OwnerContext, "clock" | "ownership" | "identity" | "events" | "retry">;
type Written = PromiseSettledResult<Recorded | null>;

/** Reports and settlements in one transaction. More, and workers wait longer for receipts than it saves. */
const EVENTS_MAX = 2_000;

export class JobEventWriter {
  readonly #o: WriterContext;
  readonly #batcher: Batcher<OwnedBatch, Written>;
  #over = new AbortController();

  constructor(context: WriterContext) {
    this.#o = context;
    this.#batcher = new Batcher({
      clock: context.clock,
      batchMax: EVENTS_MAX,
      sizeOf: ({ reports, settlements }) => reports.length + settlements.length,
      flush: (batch) => this.#flush(batch),
    });
  }

  start(): void {
    this.#over = new AbortController();
  }

  /** Events that the store does not take now are returned to their queue. */
  stop(): void {
    this.#over.abort();
  }

  async write(events: OwnedBatch): Promise<Recorded | null> {
    const written = await this.#batcher.add(events);
    if (written.status === "rejected") throw written.reason;
    return written.value;
  }

  async #flush(batch: readonly OwnedBatch[]): Promise<Written[]> {
    const { ownership, identity, retry } = this.#o;
    try {
      const verdicts = await retry.call(() => ownership.record(batch, identity), this.#over.signal);
      return batch.map((events, at) => {
        const value = verdicts[at] ?? null;
        this.#emit(events, value);
        return { status: "fulfilled", value };
      });
    } catch (reason) {
      // One that the store can never take must not block the others.
      const guilty = batch.length === 1 || isTransient(reason) || this.#over.signal.aborted;
      if (guilty) return batch.map(() => ({ status: "rejected", reason }));
      const alone: Written[] = [];
      for (const events of batch) alone.push(...(await this.#flush([events])));
      return alone;
    }
  }

  #emit(batch: OwnedBatch, answer: Recorded | null): void {
    const { events } = this.#o;
    if (answer) return emitRecorded(events, batch, answer);
    const { assignment, ownerEpoch } = batch;
    const write = "ownership.write";
    events.emit("write.refused", { write, carried: ownerEpoch, current: null, job: null, id: assignment });
  }
}
