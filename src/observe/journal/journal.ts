/**
 * Writes the journal in the background; callers do not wait. While the store is unavailable entries wait, at most
 * `WAITING_MAX`; beyond that the oldest are dropped, and their number is logged. Entries that a dying process had not
 * written are lost: the journal is for people, and no decision depends on it.
 */

import { within } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { JournalEntry, JournalKind, JournalQuery, JournalStore, NewEntry } from "../../store/journal.ts";

export interface Note {
  readonly kind: JournalKind;
  readonly actor?: string | null;
  readonly subject?: string | null;
  readonly detail?: Readonly<Record<string, unknown>>;
  /** How long ago it happened; now, if it is left out. */
  readonly agoMs?: number;
}

export type JournalService = Pick<Journal, "note" | "list">;

/** What comes in so short a time is written together. Longer, and more is lost with a process that dies. */
const GATHER_MS = 20;
const RETRY_MS = 1_000;
const WAITING_MAX = 2_000;
const BATCH_MAX = 200;
const LAST_WORDS_MS = 1_000;
/** Of one entry; what is larger says only that it was. */
const DETAIL_LENGTH_MAX = 16_384;

interface Waiting {
  readonly entry: Omit<NewEntry, "agoMs">;
  readonly happenedAt: number;
}

export class Journal extends Lifecycle {
  readonly #platform: Pick<Platform, "clock" | "log" | "identity">;
  readonly #store: Pick<JournalStore, "append" | "list">;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | null = null;
  #callOff: (() => void) | null = null;
  #failing = false;
  #dropped = 0;

  constructor(
    platform: Pick<Platform, "clock" | "log" | "identity">,
    store: Pick<JournalStore, "append" | "list">,
  ) {
    super();
    this.#platform = platform;
    this.#store = store;
  }

  note({ kind, actor = null, subject = null, detail = {}, agoMs = 0 }: Note): void {
    const { identity, clock } = this.#platform;
    const entry = { kind, node: identity.name, actor, subject, detail: bounded(detail) };
    this.#waiting.push({ entry, happenedAt: clock.monotonic() - agoMs });
    if (this.#waiting.length > WAITING_MAX) {
      this.#waiting.shift();
      this.#dropped++;
    }
    if (this.running) this.#writeIn(GATHER_MS);
  }

  list(query: JournalQuery): Promise<readonly JournalEntry[]> {
    return this.#store.list(query);
  }

  /** Resolves when all entries so far are written, or could not be. */
  async flush(): Promise<void> {
    await this.#writing;
    await this.#write();
  }

  protected override onStart(): void {
    if (this.#waiting.length > 0) this.#writeIn(GATHER_MS);
  }

  protected override async onStop(): Promise<void> {
    this.#callOff?.();
    this.#callOff = null;
    await within(this.#platform.clock, LAST_WORDS_MS, this.flush());
    this.#waiting = [];
  }

  #writeIn(ms: number): void {
    if (this.#callOff || this.#writing) return;
    this.#callOff = this.#platform.clock.after(ms, () => {
      this.#callOff = null;
      void this.#write();
    });
  }

  #write(): Promise<void> {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = null;
      if (this.running && this.#waiting.length > 0) this.#writeIn(this.#failing ? RETRY_MS : GATHER_MS);
    });
    return this.#writing;
  }

  async #writeAll(): Promise<void> {
    const { clock, log } = this.#platform;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, BATCH_MAX);
      const now = clock.monotonic();
      try {
        await this.#store.append(
          batch.map(({ entry, happenedAt }) => ({ ...entry, agoMs: Math.max(0, now - happenedAt) })),
        );
      } catch (error) {
        if (!this.#failing) log.warn({ err: error, entries: batch.length }, "the journal cannot be written");
        this.#failing = true;
        return;
      }
      this.#failing = false;
      const written = new Set(batch);
      this.#waiting = this.#waiting.filter((one) => !written.has(one));
      if (this.#dropped > 0) log.warn({ entries: this.#dropped }, "entries of the journal were let go");
      this.#dropped = 0;
    }
  }
}

function bounded(detail: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const length = JSON.stringify(detail).length;
  return length <= DETAIL_LENGTH_MAX ? detail : { left_out: `${length} characters` };
}
