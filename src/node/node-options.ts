/** What the caller of `createNode` may give. Apart from the layers, to keep their types out of those of the package. */

import type { Channels } from "../channels/channels.ts";
import type { Coordination } from "../leadership/coordination.ts";
import type { BeforeLeading } from "../leadership/elector.ts";
import type { WorkerOptions } from "../jobs/run/worker.ts";
import type { BullyOptions } from "../peers/open-peers.ts";
import type { NodeEvents } from "../platform/node-events.ts";
import type { Probe } from "../observe/reachability.ts";
import type { Store } from "../store/store.ts";
import type { NodeTransport } from "../transport/transport.ts";
import type { NodePlatform, PlatformOptions } from "./platform.ts";

export interface NodeOptions extends PlatformOptions {
  /** False for a node without a listener, used in process only. */
  readonly http?: boolean;
  /** Called around each run of a handler here. */
  readonly around?: WorkerOptions["around"];
  /** Gets the events of each start before anything happens. */
  readonly observe?: (events: NodeEvents) => void;
  /** What has to happen before this node begins to lead, such as its agent's end. */
  readonly beforeLeading?: BeforeLeading;
  /** In place of disks and networks, for a simulation of whole nodes. */
  readonly fabric?: GivenFabric;
}

/** What a simulation gives in place of disks and networks: `network` for nodes with a store each, else `shared`. */
export interface GivenFabric {
  openStore(): Promise<Store>;
  readonly network?: {
    readonly url: string;
    readonly transport: NodeTransport;
    readonly probe: BullyOptions["probe"];
    readonly httpProbe: Probe;
  };
  shared?(p: NodePlatform): { readonly coordination: Coordination; readonly channels: Channels };
}
