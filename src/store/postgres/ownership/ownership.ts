/** The ownership of a PostgreSQL store: each call is one statement, or a few short transactions. */

import type { Clock } from "../../../platform/clock.ts";
import type { AssignmentId, OwnershipStore } from "../../ownership.ts";
import type { StoreCache } from "../jobs/store-cache.ts";
import type { Settle } from "../jobs/settle.ts";
import type { Report } from "../jobs/report.ts";
import type { PostgresTerms } from "../terms.ts";
import { Accept } from "./accept.ts";
import { Assignments } from "./assignments.ts";
import { Dispatch } from "./dispatch.ts";
import { OwnedWrites } from "./owned-writes.ts";

export interface PostgresOwnershipParts {
  readonly cache: StoreCache;
  readonly terms: PostgresTerms;
  readonly clock: Clock;
  readonly settle: Settle;
  readonly report: Report;
}

export function postgresOwnership(parts: PostgresOwnershipParts): OwnershipStore {
  const { cache, terms, clock, settle, report } = parts;
  const dispatch = new Dispatch(cache, terms, clock);
  const accept = new Accept(cache, settle);
  const assignments = new Assignments(cache, terms);
  const writes = new OwnedWrites(cache, settle, report);
  return {
    dispatch: (request, fence) => dispatch.run(request, fence),
    accept: (request) => accept.run(request),
    undispatch: (olderThanMs, fence) => dispatch.undispatch(olderThanMs, fence),
    own: (claims, owner) => assignments.own(claims, owner),
    record: (batches, owner) => writes.run(batches, owner),
    release: (held, owner, state) => assignments.release(held, owner, state),
    read: ((ids: readonly AssignmentId[], counted?: boolean) =>
      assignments.read(ids, counted === true)) as OwnershipStore["read"],
    owners: () => assignments.owners(),
    disown: (incarnations, fence) => assignments.disown(incarnations, fence),
    orphans: (look, fence) => assignments.orphans(look, fence),
  };
}
