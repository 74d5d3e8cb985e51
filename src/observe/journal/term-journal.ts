/**
 * Records terms of leadership in the journal. A leader records its own terms. A killed leader cannot record the end of
 * its term, so its successor checks a little later whether that end was recorded, and records it otherwise.
 */

import type { NodeInfo } from "../../core/node.ts";
import { TERM_ENDS, type Term, type TermChange } from "../../core/leadership/term.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import type { JournalEntry, JournalQuery } from "../../store/journal.ts";
import type { Note } from "./journal.ts";

export interface TermJournalOptions {
  readonly journal: {
    note(note: Note): void;
    list(query: JournalQuery): Promise<readonly JournalEntry[]>;
  };
  readonly nodes: () => readonly Pick<NodeInfo, "name" | "incarnation" | "status">[];
  readonly clock: Clock;
  readonly log: Pick<Log, "debug">;
}

/** A leader that ended in peace writes that down within moments; its death is known by then as well. */
const LOOK_AFTER_MS = 1_500;
const LOOK_BACK = 50;

type Told = Pick<Term, "role" | "epoch" | "leader" | "incarnation">;

export class TermJournal {
  readonly #o: TermJournalOptions;
  /** By role. */
  readonly #looks = new Map<string, () => void>();

  constructor(options: TermJournalOptions) {
    this.#o = options;
  }

  changed(change: TermChange): void {
    const { journal, clock } = this.#o;
    const { role } = change.term;
    this.#looks.get(role)?.();
    this.#looks.delete(role);
    if (change.is === "ended") return this.#ended(change.term, TERM_ENDS[change.reason]);
    const { term, before } = change;
    journal.note({ kind: "term.started", subject: term.role, detail: { ...told(term) } });
    const since = clock.monotonic();
    const callOff = clock.after(LOOK_AFTER_MS, () => void this.#lookBack(term, before, since));
    this.#looks.set(role, callOff);
  }

  #ended(term: Told, reason: string, agoMs = 0): void {
    this.#o.journal.note({
      kind: "term.ended",
      subject: term.role,
      detail: { ...told(term), reason },
      agoMs,
    });
  }

  async #lookBack(term: Term, seen: Term | null, since: number): Promise<void> {
    const { journal, clock, log } = this.#o;
    try {
      const query = { kinds: ["term.started", "term.ended"], subject: term.role, limit: LOOK_BACK } as const;
      const entries = await journal.list(query);
      const last = seen && seen.epoch < term.epoch ? seen : lastBefore(term, entries);
      if (!last || entries.some((entry) => isEndOf(entry, last))) return;
      this.#ended(last, this.#whyGone(last), clock.monotonic() - since);
    } catch (error) {
      log.debug({ err: error, leaderRole: term.role }, "could not look how the last term ended");
    }
  }

  #whyGone({ leader, incarnation }: Told): string {
    const node = this.#o.nodes().find((each) => each.incarnation === incarnation);
    if (!node || node.status === "dead") return `${leader} died`;
    return `${leader} did not renew its lease in time`;
  }
}

function told({ role, epoch, leader, incarnation }: Told): Told {
  return { role, epoch, leader, incarnation };
}

function lastBefore(term: Term, entries: readonly JournalEntry[]): Told | null {
  const found = entries.find(({ kind, detail }) => {
    return kind === "term.started" && (detail["epoch"] as number) < term.epoch;
  });
  return (found?.detail as unknown as Told | undefined) ?? null;
}

function isEndOf({ kind, detail }: JournalEntry, { epoch, incarnation }: Told): boolean {
  return kind === "term.ended" && detail["epoch"] === epoch && detail["incarnation"] === incarnation;
}
