/**
 * Records terms of leadership in the journal. A leader records its own terms. A killed leader cannot record the end of
 * its term, so its successor checks a little later whether that end was recorded, and records it otherwise.
 */

import { TERM_ENDS, type Term, type TermChange } from "../../core/leadership/term.ts";
import type { Membership } from "../../leadership/coordination.ts";
import type { Platform } from "../../platform/platform.ts";
import type { JournalEntry } from "../../store/journal.ts";
import type { Journal } from "./journal.ts";

/** A leader that stops records the end of its term within moments. */
const CHECK_AFTER_MS = 1_500;
/** A death may be known later than the next term; without it, or a heartbeat, the reason is not known either. */
const CHECKS_MAX = 8;
const CHECK_ENTRIES = 50;

type TermDetail = Pick<Term, "role" | "epoch" | "leader" | "incarnation">;

/** The start of a term, after which the end of those before it is checked. */
interface Start {
  readonly term: Term;
  readonly before: Term | null;
  readonly since: number;
  /** When the nodes were last heard of, as known at the first check; by incarnation. */
  readonly heardAt: ReadonlyMap<string, number> | null;
  readonly checks: number;
}

export class TermJournal {
  readonly #platform: Pick<Platform, "clock" | "log">;
  readonly #journal: Pick<Journal, "note" | "list">;
  readonly #membership: Pick<Membership, "nodes">;
  /** By role. */
  readonly #checks = new Map<string, () => void>();

  constructor(
    platform: Pick<Platform, "clock" | "log">,
    journal: Pick<Journal, "note" | "list">,
    membership: Pick<Membership, "nodes">,
  ) {
    this.#platform = platform;
    this.#journal = journal;
    this.#membership = membership;
  }

  changed(change: TermChange): void {
    const { clock } = this.#platform;
    const { role } = change.term;
    this.#checks.get(role)?.();
    this.#checks.delete(role);
    if (change.is === "ended") return this.#ended(change.term, TERM_ENDS[change.reason]);
    const { term, before } = change;
    this.#journal.note({ kind: "term.started", subject: term.role, detail: { ...detailOf(term) } });
    this.#checkLater({ term, before, since: clock.monotonic(), heardAt: null, checks: 1 });
  }

  #ended(term: TermDetail, reason: string, agoMs = 0): void {
    this.#journal.note({
      kind: "term.ended",
      subject: term.role,
      detail: { ...detailOf(term), reason },
      agoMs,
    });
  }

  #checkLater(start: Start): void {
    const run = (): void => void this.#check(start);
    this.#checks.set(start.term.role, this.#platform.clock.after(CHECK_AFTER_MS, run));
  }

  /** Records the end of every earlier term that has none: a successor may itself be gone before it did. */
  async #check(start: Start): Promise<void> {
    const { clock, log } = this.#platform;
    const { term, before, since, checks } = start;
    try {
      const query = {
        kinds: ["term.started", "term.ended"],
        subject: term.role,
        limit: CHECK_ENTRIES,
      } as const;
      const open = openBefore(term, before, await this.#journal.list(query));
      const reasons = open.map((each) => this.#reason(each, start));
      if (reasons.includes(null) && checks < CHECKS_MAX)
        return this.#checkLater({ ...start, heardAt: start.heardAt ?? this.#heardAt(), checks: checks + 1 });
      for (const [at, each] of open.entries())
        this.#ended(each, reasons[at] ?? notRenewed(each), clock.monotonic() - since);
    } catch (error) {
      log.debug({ err: error, leaderRole: term.role }, "could not check how the last term ended");
    }
  }

  /** Null while nothing was heard of the node since: it may be dead. */
  #reason(ended: TermDetail, { heardAt }: Start): string | null {
    const node = this.#membership.nodes().find((each) => each.incarnation === ended.incarnation);
    if (!node || node.status === "dead") return `${ended.leader} died`;
    const before = heardAt?.get(node.incarnation);
    return before !== undefined && node.lastSeenAt > before ? notRenewed(ended) : null;
  }

  #heardAt(): ReadonlyMap<string, number> {
    return new Map(this.#membership.nodes().map((node) => [node.incarnation, node.lastSeenAt]));
  }
}

function notRenewed({ leader }: TermDetail): string {
  return `${leader} did not renew its lease in time`;
}

function detailOf({ role, epoch, leader, incarnation }: TermDetail): TermDetail {
  return { role, epoch, leader, incarnation };
}

function openBefore(term: Term, before: Term | null, entries: readonly JournalEntry[]): TermDetail[] {
  const started = entries
    .filter(({ kind }) => kind === "term.started")
    .map(({ detail }) => detail as unknown as TermDetail);
  const earlier = before
    ? [detailOf(before), ...started.filter(({ epoch }) => epoch !== before.epoch)]
    : started;
  return earlier.filter((each) => each.epoch < term.epoch && !entries.some((entry) => isEndOf(entry, each)));
}

function isEndOf({ kind, detail }: JournalEntry, { epoch, incarnation }: TermDetail): boolean {
  return kind === "term.ended" && detail["epoch"] === epoch && detail["incarnation"] === incarnation;
}
