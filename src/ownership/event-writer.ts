import type { NodeIdentity } from "../core/node.ts";
import { emitReported, emitSettled } from "../jobs/run-writes.ts";
import type { NodeEvents } from "../platform/node-events.ts";
import type { OwnedEvents, OwnedVerdicts, OwnershipStore } from "../store/ownership.ts";
import { passes, type StoreCalls } from "./store-calls.ts";

export interface EventWriterOptions {
  readonly ownership: Pick<OwnershipStore, "write">;
  readonly identity: NodeIdentity;
  readonly calls: StoreCalls;
  readonly events: NodeEvents;
}

interface Waiting {
  readonly events: OwnedEvents;
  readonly resolve: (verdicts: OwnedVerdicts | null) => void;
  readonly reject: (error: unknown) => void;
}

/** Reports and settlements in one transaction. More, and those who wait for its receipts wait longer than it saves. */
const EVENTS_MAX = 2_000;

/**
 * Writes the events of all assignments together: at once when idle, and what came meanwhile with the next write. While the
 * store is away they are kept in hand and tried again rather than given back, because what is given back may be overtaken.
 */
export class EventWriter {
  readonly #o: EventWriterOptions;
  #over = new AbortController();
  #waiting: Waiting[] = [];
  #writing = false;

  constructor(options: EventWriterOptions) {
    this.#o = options;
  }

  start(): void {
    this.#over = new AbortController();
  }

  /** What the store does not take now is given back. */
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
    const { ownership, identity, calls } = this.#o;
    const events = batch.map((one) => one.events);
    try {
      const verdicts = await calls.until(() => ownership.write(events, identity), this.#over.signal);
      for (const [at, one] of batch.entries()) {
        const answer = verdicts[at] ?? null;
        this.#emit(one.events, answer);
        one.resolve(answer);
      }
    } catch (error) {
      // One that the store can never take must not keep the others out.
      const guilty = batch.length === 1 || passes(error) || this.#over.signal.aborted;
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
