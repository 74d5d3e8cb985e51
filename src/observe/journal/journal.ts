/**
 * Writes the journal in the background; callers do not wait. While the store is unavailable entries wait, at most
 * `WAITING_MAX`; beyond that the oldest are dropped, and their number is logged. Entries that a dying process had not
 * written are lost: the journal is for people, and no decision depends on it.
 */

import { within } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import { serviceOf } from "../../platform/service.ts";
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

export type Journal = ReturnType<typeof journalOf>;

export function journalOf(
  { clock, log, identity }: Pick<Platform, "clock" | "log" | "identity">,
  store: Pick<JournalStore, "append" | "list">,
) {
  let waiting: Waiting[] = [];
  let writing: Promise<void> | null = null;
  let callOff: (() => void) | null = null;
  let failing = false;
  let dropped = 0;
  /** Between start and stop. What is noted before waits. */
  let on = false;

  function start(): void {
    on = true;
    writeIn(GATHER_MS);
  }

  function writeIn(ms: number): void {
    if (!on || waiting.length === 0 || callOff || writing) return;
    callOff = clock.after(ms, () => {
      callOff = null;
      void write();
    });
  }

  function write(): Promise<void> {
    writing ??= writeAll().finally(() => {
      writing = null;
      writeIn(failing ? RETRY_MS : GATHER_MS);
    });
    return writing;
  }

  async function writeAll(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH_MAX);
      const now = clock.monotonic();
      try {
        await store.append(
          batch.map(({ entry, happenedAt }) => ({ ...entry, agoMs: Math.max(0, now - happenedAt) })),
        );
      } catch (error) {
        if (!failing) log.warn({ err: error, entries: batch.length }, "the journal cannot be written");
        failing = true;
        return;
      }
      failing = false;
      const written = new Set(batch);
      waiting = waiting.filter((one) => !written.has(one));
      if (dropped > 0) log.warn({ entries: dropped }, "entries of the journal were let go");
      dropped = 0;
    }
  }

  /** Resolves when all entries so far are written, or could not be. */
  async function flush(): Promise<void> {
    await writing;
    await write();
  }

  async function stop(): Promise<void> {
    on = false;
    callOff?.();
    callOff = null;
    await within(clock, LAST_WORDS_MS, flush());
    waiting = [];
  }

  return Object.assign(serviceOf(start, stop), {
    flush,

    note({ kind, actor = null, subject = null, detail = {}, agoMs = 0 }: Note): void {
      const entry = { kind, node: identity.name, actor, subject, detail: bounded(detail) };
      waiting.push({ entry, happenedAt: clock.monotonic() - agoMs });
      if (waiting.length > WAITING_MAX) {
        waiting.shift();
        dropped++;
      }
      writeIn(GATHER_MS);
    },

    list: (query: JournalQuery): Promise<readonly JournalEntry[]> => store.list(query),
  });
}

function bounded(detail: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const length = JSON.stringify(detail).length;
  return length <= DETAIL_LENGTH_MAX ? detail : { left_out: `${length} characters` };
}
