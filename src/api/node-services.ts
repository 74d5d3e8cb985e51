/** The services of a node that the operations of the API use. src/node builds them; a test may pass others. */

import type { Access } from "../access/access.ts";
import type { Cluster } from "../observe/cluster-view.ts";
import type { JournalService } from "../observe/journal/journal.ts";
import type { Placement } from "../peers/placement/round-robin-placement.ts";
import type { Health } from "../observe/readiness.ts";
import type { StoreSnapshot } from "../observe/store-snapshots.ts";
import type { WorkReport } from "../observe/worker-health-check.ts";
import type { shownSettings } from "../config/load-settings.ts";
import type { ControllerApi } from "../controller/controller.ts";
import type { Leadership, Membership } from "../leadership/coordination.ts";
import type { NodeIdentity, NodeRole } from "../core/node.ts";
import type { Functions } from "../jobs/submit/function-calls.ts";
import type { Jobs } from "../jobs/job-service.ts";
import type { Queues } from "../jobs/queue-service.ts";
import type { Schedules } from "../jobs/schedules/schedule-service.ts";
import type { TaskRegistry } from "../jobs/tasks/task-registry.ts";
import type { Clock } from "../platform/clock.ts";
import type { Guarantees } from "../store/store.ts";
import type { Peers } from "../transport/hop-headers.ts";
import type { LiveApi } from "./live-feed.ts";

export interface NodeServices {
  readonly identity: NodeIdentity;
  readonly version: string;
  readonly startedAt: number;
  readonly clock: Clock;
  readonly guarantees: Guarantees;
  readonly roles: ReadonlySet<NodeRole>;
  readonly cluster: Cluster;
  readonly functions: Functions;
  readonly jobs: Jobs;
  readonly queues: Queues;
  readonly schedules: Schedules;
  readonly leadership: Leadership;
  readonly membership: Membership;
  readonly health: Health;
  readonly work: { check(): Promise<WorkReport> };
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
  readonly tasks: Pick<TaskRegistry, "list">;
  readonly journal: JournalService;
  readonly insight: { read(): Promise<StoreSnapshot> };
  readonly live: LiveApi;
  readonly settings: { list(): ReturnType<typeof shownSettings> };
  readonly controller: ControllerApi;
  /** The way to the other nodes, where each keeps its own jobs; null or left out where nothing is ever passed on. */
  readonly peers?: Peers | null;
  /** Which node gets new jobs; with `peers` only. */
  readonly placement?: Placement | null;
  readonly access: Pick<Access, "open" | "tokens" | "users" | "first">;
}
