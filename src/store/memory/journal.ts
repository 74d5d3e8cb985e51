import type { Term } from "../../core/leadership/term.ts";
import type { JournalEntry, JournalQuery, JournalStore, NewEntry } from "../journal.ts";
import type { MemoryTerms } from "./terms.ts";
import type { Turn } from "./turn.ts";

export class MemoryJournal implements JournalStore {
  readonly #terms: MemoryTerms;
  readonly #turn: Turn;
  #entries: JournalEntry[] = [];
  #count = 0;

  constructor(options: { readonly terms: MemoryTerms; readonly turn: Turn }) {
    this.#terms = options.terms;
    this.#turn = options.turn;
  }

  append(entries: readonly NewEntry[]): Promise<void> {
    return this.#turn((now) => {
      for (const { agoMs, detail, ...rest } of entries) {
        const kept = JSON.parse(JSON.stringify(detail)) as JournalEntry["detail"];
        this.#entries.push({ ...rest, id: String(++this.#count), at: now - agoMs, detail: kept });
      }
    });
  }

  list({ kinds, subject, before, limit }: JournalQuery): Promise<readonly JournalEntry[]> {
    return this.#turn(() => {
      const found: JournalEntry[] = [];
      const end = before === undefined ? Infinity : Number(before);
      for (let at = this.#entries.length - 1; at >= 0 && found.length < limit; at--) {
        const entry = this.#entries[at]!;
        if (Number(entry.id) >= end) continue;
        if (subject !== undefined && entry.subject !== subject) continue;
        if (kinds && !kinds.includes(entry.kind)) continue;
        found.push(entry);
      }
      return found;
    });
  }

  purge(ageMs: number, limit: number, fence: Term): Promise<number> {
    return this.#turn((now) => {
      this.#terms.require(fence);
      const before = this.#entries.length;
      this.#entries = this.#entries.filter(({ at }, n) => n >= limit || at > now - ageMs);
      return before - this.#entries.length;
    });
  }
}
