/** What a node tells of itself to those who watch it: metrics, traces, and whether it works. Made first, because all others tell it. */

import { BacklogReader } from "./cluster/backlog.ts";
import type { LeaderRoles } from "./cluster/leader-roles.ts";
import type { LoadMeter } from "./cluster/load-meter.ts";
import { Watchdog } from "./cluster/watchdog.ts";
import { WorkCheck } from "./cluster/work-check.ts";
import type { Channels } from "./channels/channels.ts";
import type { Settings } from "./config/settings.ts";
import type { Coordination } from "./coordination/coordination.ts";
import type { Budgets } from "./core/job.ts";
import type { NodeIdentity } from "./core/node.ts";
import { roleOf } from "./core/role.ts";
import { traceFields } from "./core/trace.ts";
import type { WorkFacts } from "./core/work-health.ts";
import type { HttpServer } from "./http/server.ts";
import { JobSpans } from "./jobs/job-spans.ts";
import type { TaskRegistry } from "./jobs/task-registry.ts";
import type { Worker } from "./jobs/worker.ts";
import type { WorkerSettings } from "./jobs/worker-settings.ts";
import { WorkerWatch } from "./jobs/worker-watch.ts";
import { AgentMetrics } from "./metrics/agent-metrics.ts";
import { describeBacklog } from "./metrics/backlog-metrics.ts";
import { HttpMetrics } from "./metrics/http-metrics.ts";
import { Instruments } from "./metrics/instruments.ts";
import { JobMetrics } from "./metrics/job-metrics.ts";
import { LeaderMetrics } from "./metrics/leader-metrics.ts";
import { NodeMetrics } from "./metrics/node-metrics.ts";
import { describeProcess } from "./metrics/process-metrics.ts";
import { ScheduleMetrics } from "./metrics/schedule-metrics.ts";
import { describeStoreErrors } from "./metrics/store-metrics.ts";
import type { Clock } from "./platform/clock.ts";
import { withFields, type Log } from "./platform/log.ts";
import { OpenTelemetry } from "./platform/tracing.ts";
import type { PushDispatch } from "./push-dispatch.ts";
import type { Store } from "./store/store.ts";
import { VERSION } from "./version.ts";

export interface MetricsPartsOptions {
  readonly settings: Settings;
  readonly identity: NodeIdentity;
  readonly startedAt: number;
  readonly tasks: TaskRegistry;
  readonly worker: Pick<WorkerSettings, "concurrency" | "queues" | "exceptQueues">;
  readonly budgets: Budgets;
  readonly clock: Clock;
  readonly log: Log;
  readonly draining: () => boolean;
  readonly forming: () => string | null;
  /** Built later, of what is made here. */
  readonly parts: () => {
    readonly store: Store;
    readonly coordination: Coordination;
    readonly channels: Channels;
    readonly leaders: LeaderRoles;
    readonly worker: Worker;
    readonly load: LoadMeter;
    readonly http: HttpServer | null;
    readonly push: PushDispatch | null;
  };
}

/** What a scrape waits for numbers of the store that are old: it is to be answered within 50 ms, whatever the store does. */
const BACKLOG_MS = 25;

export function openMetrics(options: MetricsPartsOptions) {
  const { settings, identity, startedAt, tasks, worker, budgets, clock, draining, forming, parts } = options;
  let leading: LeaderRoles | null = null;
  const tracing = new OpenTelemetry(VERSION);
  /** Who speaks, under which epoch, and in whose trace. */
  const log = withFields(options.log, () => ({
    role: roleOf(leading?.scheduler.held() ?? null, draining()),
    epoch: leading?.scheduler.current()?.epoch ?? 0,
    ...traceFields(tracing.active()),
  }));
  const slots = worker.concurrency;
  const spans = new JobSpans({ tracing, node: identity.name });
  const instruments = new Instruments();
  const jobs = new JobMetrics(instruments);
  const http = new HttpMetrics(instruments);
  const agents = new AgentMetrics(instruments);
  const schedules = new ScheduleMetrics(instruments, clock);
  const leaders = new LeaderMetrics(instruments, (role) => parts().leaders.of(role));
  const watch = new WorkerWatch({ clock, slots, spans, sink: jobs });
  const watchdog = new Watchdog({ clock, log });
  const backlog = new BacklogReader({
    store: { queues: () => parts().store.queues, agents: () => parts().store.agents },
    clock,
  });
  const node = new NodeMetrics(instruments, {
    identity,
    about: () => {
      const { store, coordination, channels, push } = parts();
      return {
        version: VERSION,
        store: store.guarantees.name,
        coordination: coordination.kind,
        channels: channels.kind,
        dispatch: push ? "push" : "pull",
      };
    },
    startedAt,
    slots,
    watch,
    watchdog,
    parts: () => {
      const { load, http: listener, coordination, push, worker: running } = parts();
      return {
        worker: running,
        load,
        membership: coordination.membership,
        http: listener,
        owner: push?.owner ?? null,
      };
    },
  });
  describeBacklog(instruments, { backlog, clock, agentStaleMs: settings.agents.staleAfterMs });
  describeStoreErrors(instruments, () => ({ ...jobs.errors, backlog: backlog.failures }));
  describeProcess(instruments, startedAt);
  const work = new WorkCheck({
    watch,
    watchdog,
    backlog,
    jobs: () => parts().store.jobs,
    tasks,
    served: worker,
    slots,
    running: () => parts().worker.active,
    state: (): WorkFacts["state"] => {
      if (draining()) return "draining";
      return forming() === null && parts().worker.running ? "working" : "starting";
    },
    budgets,
    clock,
  });
  return {
    log,
    /** The log tells of them from now on. */
    leading: (roles: LeaderRoles): LeaderRoles => (leading = roles),
    spans,
    watch,
    watchdog,
    backlog,
    jobs,
    leaders,
    node,
    schedules,
    /** For the controller. */
    controller: { spans, sink: agents },
    onSample: (lagMs: number): void => {
      node.sampled(lagMs);
      watchdog.look();
    },
    /** For the listener. */
    listener: { tracing, sink: http },
    services: {
      work,
      metrics: {
        contentType: instruments.contentType,
        async text(): Promise<string> {
          await backlog.read(BACKLOG_MS);
          return instruments.text();
        },
      },
    },
  };
}
