/** The ownership of a PostgreSQL store: each call is one statement, or a few short transactions. */

import type { Clock } from "../../../platform/clock.ts";
import type { OwnershipStore } from "../../ownership.ts";
import type { Report } from "../jobs/report.ts";
import type { Settle } from "../jobs/settle.ts";
import type { StoreCache } from "../jobs/store-cache.ts";
import type { PostgresScripts } from "../scripts.ts";
import { acceptRuns } from "./accept.ts";
import { assignments } from "./assignments.ts";
import { dispatches } from "./dispatch.ts";
import { ownedWrites } from "./owned-writes.ts";

export function postgresOwnership(parts: {
  readonly cache: StoreCache;
  readonly scripts: PostgresScripts;
  readonly clock: Clock;
  readonly settle: Settle;
  readonly report: Report;
}): OwnershipStore {
  const { cache, scripts, clock, settle, report } = parts;
  return {
    ...dispatches(cache, scripts, clock),
    accept: acceptRuns(cache, settle),
    ...assignments(cache, scripts),
    record: ownedWrites(cache, settle, report),
  };
}
