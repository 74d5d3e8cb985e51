/**
 * Writes the events of all assignments together: at once when idle; events that arrive during a write go into the next
 * one. While the store is unavailable, events are kept and tried again, not returned to their queue, where others could
 * overtake them.
 */

import { emitReported, emitSettled } from "../../jobs/run/run-writes.ts";
import type { OwnedEvents, OwnedVerdicts } from "../../store/ownership.ts";
import type { OwnerOptions } from "./owner-options.ts";
import { isTransient, type StoreRetry } from "./store-retry.ts";

export interface JobEventWriterOptions extends Pick<OwnerOptions, "ownership" | "identity" | "events"> {
  readonly retry: StoreRetry;
}

interface Waiting {
  readonly events: OwnedEvents;
  readonly resolve: (verdicts: OwnedVerdicts | null) => void;
  readonly reject: (error: unknown) => void;
}

/** Reports and settlements in one transaction. More, and workers wait longer for receipts than it saves. */
const EVENTS_MAX = 2_000;

export class JobEventWriter {
  readonly #o: JobEventWriterOptions;
  #over = new AbortController();
  #waiting: Waiting[] = [];
  #writing = false;

  constructor(options: JobEventWriterOptions) {
    this.#o = options;
  }

  start(): void {
    this.#over = new AbortController();
  }

  /** Events that the store does not take now are returned to their queue. */
  stop(): void {
    this.#over.abort();
  }

  /** Null when the assignment is not ours under this epoch. */
  write(events: OwnedEvents): Promise<OwnedVerdicts | null> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ events, resolve, reject });
      if (this.#writing) return;
      this.#writing = true;
      setImmediate(() => void this.#run());
    });
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) await this.#flush(this.#take());
    this.#writing = false;
  }

  #take(): Waiting[] {
    let weight = 0;
    let count = 0;
    while (count < this.#waiting.length && (count === 0 || weight < EVENTS_MAX)) {
      const { reports, settlements } = this.#waiting[count++]!.events;
      weight += reports.length + settlements.length;
    }
    return this.#waiting.splice(0, count);
  }

  async #flush(batch: readonly Waiting[]): Promise<void> {
    const { ownership, identity, retry } = this.#o;
    const events = batch.map((one) => one.events);
    try {
      const verdicts = await retry.call(() => ownership.write(events, identity), this.#over.signal);
      for (const [at, one] of batch.entries()) {
        const answer = verdicts[at] ?? null;
        this.#emit(one.events, answer);
        one.resolve(answer);
      }
    } catch (error) {
      // One that the store can never take must not block the others.
      const guilty = batch.length === 1 || isTransient(error) || this.#over.signal.aborted;
      if (guilty) for (const one of batch) one.reject(error);
      else for (const one of batch) await this.#flush([one]);
    }
  }

  #emit({ assignment, ownerEpoch, reports, settlements }: OwnedEvents, answer: OwnedVerdicts | null): void {
    const { events } = this.#o;
    if (answer) {
      emitReported(events, reports, answer.reported);
      emitSettled(events, settlements, answer.settled);
      return;
    }
    const write = "ownership.write";
    events.emit("write.refused", { write, carried: ownerEpoch, current: null, job: null, id: assignment });
  }
}
