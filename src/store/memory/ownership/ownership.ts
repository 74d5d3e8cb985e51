/**
 * Assignments and their owners in memory, for push dispatch. Each call is one turn, which takes the place of a
 * transaction.
 */

import type { NodeIdentity } from "../../../core/node.ts";
import type { Term } from "../../../core/leadership/term.ts";
import type {
  Accepted,
  AcceptRequest,
  AssignmentId,
  Dispatched,
  DispatchedJob,
  DispatchRequest,
  Held,
  OwnedEvents,
  Orphan,
  OwnedVerdicts,
  Ownership,
  OwnershipStore,
} from "../../ownership.ts";
import type { Assignment, Entry, StoreCache } from "../jobs/store-cache.ts";
import type { Leases } from "../jobs/leases.ts";
import { copiedReport, copiedSettlement, type RunWrites } from "../jobs/run-writes.ts";
import { asClaimed } from "../jobs/run-endings.ts";
import type { MemoryTerms } from "../terms.ts";
import type { Turn } from "../turn.ts";

export interface MemoryOwnershipOptions {
  readonly ledger: StoreCache;
  readonly leases: Leases;
  readonly runs: RunWrites;
  readonly terms: MemoryTerms;
  readonly turn: Turn;
}

/** Of a dispatch. */
interface Part {
  readonly assignment: Assignment;
  readonly jobs: DispatchedJob[];
}

export class MemoryOwnership implements OwnershipStore {
  readonly #o: MemoryOwnershipOptions;
  /** In the order in which they were made. */
  readonly #assignments = new Map<AssignmentId, Assignment>();
  #made = 0;

  constructor(options: MemoryOwnershipOptions) {
    this.#o = options;
  }

  dispatch(request: DispatchRequest, fence: Term): Promise<Dispatched> {
    const { ledger, terms, turn } = this.#o;
    return turn((now) => {
      terms.require(fence);
      const parts: Part[] = [];
      const part = (): Part => {
        const made = { assignment: this.#make(now), jobs: [] };
        parts.push(made);
        return made;
      };
      let open: Part | null = null;
      for (const entry of ledger.due({ ...request, unmarked: true })) {
        if (entry.suspect) this.#mark(entry, part());
        else {
          if (!open || open.jobs.length >= request.size) open = part();
          this.#mark(entry, open);
        }
      }
      const assignments = parts.map(({ assignment, jobs }) => ({ id: assignment.id, jobs }));
      const nextDueAt = ledger.nextDueAt();
      return { assignments, nextDueInMs: nextDueAt === null ? null : nextDueAt - now };
    });
  }

  accept(request: AcceptRequest): Promise<Accepted> {
    const { ledger, leases, runs, turn } = this.#o;
    return turn((now) => {
      const wanted = request.runs.map((run) => ({ ...run }));
      const held = leases.hold(request.lease, request.leaseMs, request.opens);
      const accepted = wanted.map(({ id, jobEpoch, assignment }) => {
        const entry = ledger.find(id);
        if (!held || entry?.job.status !== "queued" || entry.assignment?.id !== assignment) return false;
        if (entry.job.jobEpoch + 1 !== jobEpoch) return false;
        runs.start(entry, request, now);
        return true;
      });
      return { held, accepted };
    });
  }

  undispatch(olderThanMs: number, fence: Term): Promise<ReadonlyMap<string, number>> {
    const { ledger, terms, turn } = this.#o;
    return turn((now) => {
      terms.require(fence);
      const old = [...ledger.marked()].filter(({ assignment }) => {
        const { id, createdAt } = assignment!;
        return createdAt <= now - olderThanMs || !this.#assignments.has(id);
      });
      for (const entry of old) ledger.mark(entry, null);
      return byQueue(old);
    });
  }

  outstanding(): Promise<ReadonlyMap<string, number>> {
    const { ledger, turn } = this.#o;
    return turn(() => byQueue(ledger.marked()));
  }

  own(claims: readonly Held[], owner: NodeIdentity): Promise<readonly (number | null)[]> {
    return this.#o.turn(() => {
      const wanted = claims.map((claim) => ({ ...claim }));
      const { name, incarnation } = owner;
      return wanted.map(({ assignment: id, ownerEpoch }) => {
        const assignment = this.#assignments.get(id);
        if (assignment?.ownerEpoch !== ownerEpoch) return null;
        assignment.owner = { name, incarnation };
        assignment.last = name;
        assignment.state = "owned";
        assignment.offeredAt = null;
        return ++assignment.ownerEpoch;
      });
    });
  }

  write(events: readonly OwnedEvents[], owner: NodeIdentity): Promise<readonly (OwnedVerdicts | null)[]> {
    const { runs, turn } = this.#o;
    return turn((now) => {
      const read = events.map(({ assignment, ownerEpoch, reports, settlements }) => ({
        assignment,
        ownerEpoch,
        reports: reports.map(copiedReport),
        settlements: settlements.map(copiedSettlement),
      }));
      // All reports before the first settlement, also across the events of a batch.
      const reported = read.map((event) => {
        if (!this.#held(event, owner)) return null;
        return event.reports.map((report) => runs.report(report, now, { assignment: event.assignment }));
      });
      return read.map(({ assignment, settlements }, at) => {
        const verdicts = reported[at];
        if (!verdicts) return null;
        const settled = settlements.map((settlement) => runs.settle(settlement, now, { assignment }));
        return { reported: verdicts, settled };
      });
    });
  }

  release(held: readonly Held[], owner: NodeIdentity, state: "unowned" | "orphan_pending"): Promise<void> {
    return this.#o.turn((now) => {
      for (const one of held) {
        const assignment = this.#held(one, owner);
        if (assignment) giveUp(assignment, state, now);
      }
    });
  }

  forget(held: readonly Held[], owner: NodeIdentity): Promise<void> {
    return this.#o.turn(() => {
      for (const one of held) {
        const assignment = this.#held(one, owner);
        if (assignment) this.#remove(assignment);
      }
    });
  }

  read(assignments: readonly AssignmentId[]): Promise<readonly (Ownership | null)[]> {
    return this.#o.turn(() =>
      assignments.map((id) => {
        const assignment = this.#assignments.get(id);
        return assignment ? ownershipOf(assignment) : null;
      }),
    );
  }

  unfinished(assignments: readonly AssignmentId[]): Promise<readonly number[]> {
    return this.#o.turn(() => assignments.map((id) => this.#assignments.get(id)?.jobs.size ?? 0));
  }

  owners(): Promise<readonly NodeIdentity[]> {
    return this.#o.turn(() => {
      const owners = new Map<string, NodeIdentity>();
      for (const { owner } of this.#assignments.values())
        if (owner) owners.set(owner.incarnation, { ...owner });
      return [...owners.values()];
    });
  }

  disown(incarnations: readonly string[], fence: Term): Promise<number> {
    const { terms, turn } = this.#o;
    return turn((now) => {
      terms.require(fence);
      let disowned = 0;
      for (const assignment of this.#assignments.values()) {
        if (!assignment.owner || !incarnations.includes(assignment.owner.incarnation)) continue;
        giveUp(assignment, "orphan_pending", now);
        disowned++;
      }
      return disowned;
    });
  }

  orphans(
    look: { readonly unownedForMs: number; readonly offeredBeforeMs: number; readonly limit: number },
    fence: Term,
  ): Promise<readonly Orphan[]> {
    const { terms, turn } = this.#o;
    return turn((now) => {
      terms.require(fence);
      const found: Orphan[] = [];
      for (const assignment of this.#assignments.values()) {
        if (found.length >= look.limit) break;
        const { id, last, ownerEpoch, state, unownedSince, offeredAt, jobs } = assignment;
        if (state === "owned") continue;
        if (state === "unowned" && unownedSince > now - look.unownedForMs) continue;
        if (offeredAt !== null && offeredAt > now - look.offeredBeforeMs) continue;
        if (jobs.size === 0) {
          this.#remove(assignment);
          continue;
        }
        assignment.offeredAt = now;
        found.push({ assignment: id, ownerEpoch, last });
      }
      return found;
    });
  }

  #make(now: number): Assignment {
    const assignment: Assignment = {
      id: ++this.#made,
      createdAt: now,
      jobs: new Set(),
      owner: null,
      last: null,
      ownerEpoch: 0,
      state: "unowned",
      unownedSince: now,
      offeredAt: null,
    };
    this.#assignments.set(assignment.id, assignment);
    return assignment;
  }

  #mark(entry: Entry, into: Part): void {
    this.#o.ledger.mark(entry, into.assignment);
    const job = asClaimed(entry.job);
    into.jobs.push({ ...job, jobEpoch: job.jobEpoch + 1, attempts: job.attempts + 1 });
  }

  #held({ assignment: id, ownerEpoch }: Held, { incarnation }: NodeIdentity): Assignment | null {
    const assignment = this.#assignments.get(id);
    const ours = assignment?.owner?.incarnation === incarnation && assignment.ownerEpoch === ownerEpoch;
    return ours ? assignment : null;
  }

  /** Jobs that are still in it, which is not meant to be, belong to nobody then. */
  #remove(assignment: Assignment): void {
    this.#assignments.delete(assignment.id);
    assignment.owner = null;
  }
}

function giveUp(assignment: Assignment, state: "unowned" | "orphan_pending", now: number): void {
  assignment.owner = null;
  assignment.state = state;
  assignment.unownedSince = now;
  assignment.offeredAt = null;
}

function ownershipOf({ id, owner, ownerEpoch, state }: Assignment): Ownership {
  return { assignment: id, ownerEpoch, owner: owner && { ...owner }, state };
}

function byQueue(entries: Iterable<Entry>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { job } of entries) counts.set(job.queue, (counts.get(job.queue) ?? 0) + 1);
  return counts;
}
