/** What a node tells the others of itself. */

import { hostname } from "node:os";
import type { Traffic } from "../cluster/traffic.ts";
import { LoadMeter, type LoadMeterOptions } from "../cluster/load-meter.ts";
import { addressOf } from "../cluster/own-address.ts";
import { Reachability } from "../cluster/reachability.ts";
import type { Settings } from "../config/settings.ts";
import type { Coordination } from "../coordination/coordination.ts";
import type { NodeIdentity, NodeRole, OwnInfo } from "../core/node.ts";
import type { HttpServer } from "../http/server.ts";
import type { TaskRegistry } from "../jobs/task-registry.ts";
import type { Worker } from "../jobs/worker.ts";
import { httpProbe } from "../platform/http-probe.ts";
import type { PushDispatch } from "./push-dispatch.ts";
import { VERSION } from "../version.ts";

type Measured = Pick<LoadMeterOptions, "clock" | "capacity" | "onSample" | "supervised">;

export interface OwnInfoOptions extends Measured {
  readonly settings: Settings;
  readonly identity: NodeIdentity;
  readonly roles: ReadonlySet<NodeRole>;
  readonly tasks: TaskRegistry;
  readonly startedAt: number;
  /** Built later. */
  readonly parts: () => {
    readonly worker: Pick<Worker, "active">;
    readonly http: Pick<HttpServer, "connections" | "running" | "url"> | null;
    readonly push: PushDispatch | null;
    readonly traffic: Pick<Traffic, "read">;
    readonly coordination: Pick<Coordination, "membership">;
  };
}

export function ownInfo(options: OwnInfoOptions) {
  const { settings, identity, roles, tasks, startedAt, parts, ...measured } = options;
  const host = hostname(); // a system call, and `info` is read with every request
  const reach = new Reachability({
    self: identity,
    nodes: () => parts().coordination.membership.nodes(),
    probe: httpProbe(options.clock),
    clock: options.clock,
  });
  const load = new LoadMeter({
    ...measured,
    jobs: () => parts().worker.active,
    connections: () => parts().http?.connections ?? 0,
    owned: () => parts().push?.load() ?? {},
    traffic: () => parts().traffic.read(),
    reach,
  });
  const address = addressOf(settings.http, host);
  const info = (): OwnInfo => {
    const { http } = parts();
    return {
      ...address(http?.running ? http.url : null),
      hostname: host,
      roles: [...roles],
      capabilities: [...tasks.names()],
      version: VERSION,
      startedAt,
      load: load.read(),
    };
  };
  return { load, info };
}
