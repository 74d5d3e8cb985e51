/**
 * The OwnershipStore in PostgreSQL. Passes each call to the class that does it: one statement, or a few short
 * transactions.
 */

import type { NodeIdentity } from "../../../core/node.ts";
import type { Term } from "../../../core/leadership/term.ts";
import type { Clock } from "../../../platform/clock.ts";
import type {
  Accepted,
  AcceptRequest,
  AssignmentId,
  CountedOwnership,
  Dispatched,
  DispatchRequest,
  Held,
  OwnedEvents,
  Orphan,
  OwnedVerdicts,
  Ownership,
  OwnershipStore,
  Released,
} from "../../ownership.ts";
import { Accept } from "./accept.ts";
import { Assignments, type OrphanSnapshot } from "./assignments.ts";
import { Dispatch } from "./dispatch.ts";
import type { StoreCache } from "../jobs/store-cache.ts";
import { OwnedWrites } from "./owned-writes.ts";
import { Report } from "../jobs/report.ts";
import { Settle } from "../jobs/settle.ts";
import type { PostgresTerms } from "../terms.ts";

export interface PostgresOwnershipOptions {
  readonly ledger: StoreCache;
  readonly terms: PostgresTerms;
  readonly clock: Clock;
}

export class PostgresOwnership implements OwnershipStore {
  readonly #dispatch: Dispatch;
  readonly #accept: Accept;
  readonly #assignments: Assignments;
  readonly #writes: OwnedWrites;

  constructor({ ledger, terms, clock }: PostgresOwnershipOptions) {
    const settle = new Settle(ledger, terms);
    this.#dispatch = new Dispatch(ledger, terms, clock);
    this.#accept = new Accept(ledger, settle);
    this.#assignments = new Assignments(ledger, terms);
    this.#writes = new OwnedWrites(ledger, settle, new Report(ledger, settle, terms));
  }

  dispatch(request: DispatchRequest, fence: Term): Promise<Dispatched> {
    return this.#dispatch.run(request, fence);
  }

  accept(request: AcceptRequest): Promise<Accepted> {
    return this.#accept.run(request);
  }

  undispatch(olderThanMs: number, fence: Term): Promise<ReadonlyMap<string, number>> {
    return this.#dispatch.undispatch(olderThanMs, fence);
  }

  outstanding(): Promise<ReadonlyMap<string, number>> {
    return this.#dispatch.outstanding();
  }

  own(claims: readonly Held[], owner: NodeIdentity): Promise<readonly (number | null)[]> {
    return this.#assignments.own(claims, owner);
  }

  write(events: readonly OwnedEvents[], owner: NodeIdentity): Promise<readonly (OwnedVerdicts | null)[]> {
    return this.#writes.run(events, owner);
  }

  release(held: readonly Held[], owner: NodeIdentity, state: Released): Promise<void> {
    return this.#assignments.release(held, owner, state);
  }

  read(assignments: readonly AssignmentId[]): Promise<readonly (Ownership | null)[]>;
  read(assignments: readonly AssignmentId[], counted: true): Promise<readonly (CountedOwnership | null)[]>;
  read(assignments: readonly AssignmentId[], counted = false): Promise<readonly (Ownership | null)[]> {
    return this.#assignments.read(assignments, counted);
  }

  owners(): Promise<readonly NodeIdentity[]> {
    return this.#assignments.owners();
  }

  disown(incarnations: readonly string[], fence: Term): Promise<number> {
    return this.#assignments.disown(incarnations, fence);
  }

  orphans(look: OrphanSnapshot, fence: Term): Promise<readonly Orphan[]> {
    return this.#assignments.orphans(look, fence);
  }
}
