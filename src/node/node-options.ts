/** The options with which a program creates a node. */

import type { BeforeLeading } from "../leadership/elector.ts";
import type { Settings } from "../config/settings.ts";
import type { NodeLoad } from "../core/node.ts";
import type { AnyTask } from "../jobs/tasks/task.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";

export interface NodeOptions {
  /** Everything, as `loadSettings` gives it; without it the environment and a `baton.yaml` are read. */
  readonly settings?: Settings;
  /** Tasks defined in code, in addition to those from the folders in `settings.tasks`. */
  readonly tasks?: readonly AnyTask[];
  readonly log?: Log;
  readonly clock?: Clock;
  readonly random?: Random;
  /** False for a node without a listener, used in process only. */
  readonly http?: boolean;
  /** What has to happen before this node begins to lead, such as its agent's end. */
  readonly beforeLeading?: BeforeLeading;
  /** What a node-controller above this node reports about itself, shown with the node; null before its first report. */
  readonly supervised?: () => NodeLoad["supervised"] | null;
}
