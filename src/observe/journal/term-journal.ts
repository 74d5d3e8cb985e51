/**
 * Records terms of leadership in the journal. A killed leader cannot record the end of its term, so its successor checks
 * a little later whether that was recorded, and records it otherwise.
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

interface Start {
  readonly term: Term;
  readonly before: Term | null;
  readonly since: number;
  /** When the nodes were last heard of, as known at the first check; by incarnation. */
  readonly heardAt: ReadonlyMap<string, number> | null;
  readonly checks: number;
}

export function termJournal(
  { clock, log }: Pick<Platform, "clock" | "log">,
  journal: Pick<Journal, "note" | "list">,
  membership: Pick<Membership, "nodes">,
): (change: TermChange) => void {
  const checks = new Map<string, () => void>();

  function ended(term: TermDetail, reason: string, agoMs = 0): void {
    journal.note({ kind: "term.ended", subject: term.role, detail: { ...detailOf(term), reason }, agoMs });
  }

  function checkLater(start: Start): void {
    checks.set(
      start.term.role,
      clock.after(CHECK_AFTER_MS, () => void check(start)),
    );
  }

  /** Records the end of every earlier term that has none: a successor may itself be gone before it did. */
  async function check(start: Start): Promise<void> {
    const { term, before, since } = start;
    try {
      const kinds = ["term.started", "term.ended"] as const;
      const entries = await journal.list({ kinds, subject: term.role, limit: CHECK_ENTRIES });
      const open = openBefore(term, before, entries);
      const reasons = open.map((each) => reasonOf(each, start));
      if (reasons.includes(null) && start.checks < CHECKS_MAX)
        return checkLater({ ...start, heardAt: start.heardAt ?? lastSeen(), checks: start.checks + 1 });
      for (const [at, each] of open.entries())
        ended(each, reasons[at] ?? notRenewed(each), clock.monotonic() - since);
    } catch (error) {
      log.debug({ err: error, leaderRole: term.role }, "could not check how the last term ended");
    }
  }

  /** Null while nothing was heard of the node since: it may be dead. */
  function reasonOf(term: TermDetail, { heardAt }: Start): string | null {
    const node = membership.nodes().find((each) => each.incarnation === term.incarnation);
    if (!node || node.status === "dead") return `${term.leader} died`;
    const before = heardAt?.get(node.incarnation);
    return before !== undefined && node.lastSeenAt > before ? notRenewed(term) : null;
  }

  function lastSeen(): ReadonlyMap<string, number> {
    return new Map(membership.nodes().map((node) => [node.incarnation, node.lastSeenAt]));
  }

  return (change) => {
    const { role } = change.term;
    checks.get(role)?.();
    checks.delete(role);
    if (change.is === "ended") return ended(change.term, TERM_ENDS[change.reason]);
    const { term, before } = change;
    journal.note({ kind: "term.started", subject: role, detail: { ...detailOf(term) } });
    checkLater({ term, before, since: clock.monotonic(), heardAt: null, checks: 1 });
  };
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
