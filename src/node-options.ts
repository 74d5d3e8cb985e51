/** What a program says when it makes a node. */

import type { BeforeLeading } from "./cluster/gated-leadership.ts";
import type { Settings } from "./config/settings.ts";
import type { NodeIdentity, NodeLoad } from "./core/node.ts";
import type { AnyTask } from "./jobs/task.ts";
import type { TaskRegistry } from "./jobs/task-registry.ts";
import type { Clock } from "./platform/clock.ts";
import type { PostgresOptions } from "./platform/drivers/postgres.ts";
import type { Log } from "./platform/log.ts";
import type { Random } from "./platform/random.ts";
import type { Store } from "./store/store.ts";

export interface NodeOptions {
  /** Everything, as `loadSettings` gives it; without it the environment and a `baton.yaml` are read. */
  readonly settings?: Settings;
  /** Tasks defined in code, beside those out of `settings.tasks` folders. */
  readonly tasks?: readonly AnyTask[];
  readonly log?: Log;
  readonly clock?: Clock;
  readonly random?: Random;
  /** False for a node without a listener, used in process only. */
  readonly http?: boolean;
  /** What has to happen before this node begins to lead, such as its agent's end. */
  readonly beforeLeading?: BeforeLeading;
  /** What a node-controller above this node tells of itself, shown with the node; null before it has told. */
  readonly supervised?: () => Readonly<Record<string, unknown>> | null;
}

/** What its parts are made of: all of it given. */
export interface PartsOptions {
  readonly identity: NodeIdentity;
  readonly store: Store;
  /** How the store is connected, where it is reached over the network. */
  readonly connection: Omit<PostgresOptions, "url" | "schema">;
  readonly settings: Settings;
  readonly tasks: TaskRegistry;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly http: boolean;
  readonly beforeLeading?: BeforeLeading;
  readonly supervised?: () => NodeLoad["supervised"] | null;
  readonly draining: () => boolean;
  readonly forming: () => string | null;
}
