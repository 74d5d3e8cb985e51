/**
 * The first layer: everything that all other layers use, and nothing that they build.
 *
 * Time, chance and log are arguments. `NodeState`, `NodeEvents`, `WorkSignal` and `Instruments` are empty here: later
 * layers publish into them, so that no layer needs a reference to a later one.
 */

import { loadMeter } from "../observe/load-meter.ts";
import { trafficOf } from "../observe/traffic.ts";
import { watchdogOf } from "../observe/watchdog.ts";
import type { Settings } from "../config/settings.ts";
import type { NodeName } from "../core/ids.ts";
import type { NodeIdentity, NodeRole, OwnInfo, NodeInfo, NodeLoad } from "../core/node.ts";
import { roleOf } from "../core/leadership/role.ts";
import { traceFields } from "../core/trace.ts";
import { JobSpans } from "../jobs/job-spans.ts";
import type { CodeSchedule, Declarations } from "../jobs/schedules/schedule-declarations.ts";
import type { TaskRegistry } from "../jobs/tasks/task-registry.ts";
import { queuesOf, servedQueues } from "../jobs/run/worker-settings.ts";
import { WorkerMonitor } from "../jobs/run/worker-monitor.ts";
import { HttpMetrics } from "../observe/metrics/http-metrics.ts";
import { Instruments } from "../observe/metrics/instruments.ts";
import { AgentMetrics, JobMetrics } from "../observe/metrics/job-metrics.ts";
import { LeaderMetrics } from "../observe/metrics/leader-metrics.ts";
import { NodeMetrics } from "../observe/metrics/node-metrics.ts";
import { ScheduleMetrics } from "../observe/metrics/schedule-metrics.ts";
import { silentLog, withFields } from "../platform/log.ts";
import { NodeEvents } from "../platform/node-events.ts";
import { NodeState } from "../platform/node-state.ts";
import { SYSTEM, type Platform } from "../platform/platform.ts";
import { openTelemetry } from "../platform/tracing.ts";
import { WorkSignal } from "../platform/work-signal.ts";
import { VERSION } from "../platform/version.ts";
import type { AnyTask } from "../jobs/tasks/task.ts";

export type NodePlatform = ReturnType<typeof platform>;

export function platform(
  settings: Settings,
  tasks: TaskRegistry,
  declared: Declarations,
  options: PlatformOptions,
) {
  const { clock = SYSTEM.clock, random = SYSTEM.random, files = SYSTEM.files } = options;
  const { machine = SYSTEM.machine } = options;
  const identity: NodeIdentity = { name: settings.name as NodeName, incarnation: random.uuid() };
  const roles: ReadonlySet<NodeRole> = new Set(settings.roles);
  const startedAt = clock.now();
  const state = new NodeState();
  const tracing = openTelemetry(VERSION);
  /** Every line names the role, the epoch and the trace under which it was written. */
  const log = withFields(options.log ?? silentLog, () => ({
    role: roleOf(state.readings.term(), state.draining),
    epoch: state.readings.leader()?.epoch ?? 0,
    ...traceFields(tracing.active()),
  }));
  const places = {
    concurrency: roles.has("worker") || roles.has("function") ? settings.worker.concurrency : 0,
    ...queuesOf(roles, settings.worker.queues),
  };
  const traffic = trafficOf(clock);
  const instruments = new Instruments();
  /** Those that count for `/metrics`. What is read from services of later layers is registered by `compose`. */
  const metrics = {
    instruments,
    jobs: new JobMetrics(instruments),
    http: new HttpMetrics(instruments),
    agents: new AgentMetrics(instruments),
    schedules: new ScheduleMetrics(instruments, clock),
    leaders: new LeaderMetrics(),
    node: new NodeMetrics(),
  };
  const spans = new JobSpans(tracing, identity.name);
  const base: Platform = { clock, random, files, machine, log, identity, state, events: new NodeEvents(log) };
  const watch = new WorkerMonitor(base, { slots: places.concurrency, spans, sink: metrics.jobs });
  const watchdog = watchdogOf(base);
  const load = loadMeter(base, {
    traffic,
    capacity: {
      slots: places.concurrency,
      serves: servedQueues(places),
      ...(declared.version !== null && { declares: declared.version }),
    },
    onSample: (lagMs) => {
      metrics.node.sampled(lagMs);
      watchdog.look();
    },
    supervised: options.supervised,
  });
  const address = addressOf(settings.http, machine.hostname);
  const info = (): OwnInfo => ({
    ...address(state.readings.url()),
    hostname: machine.hostname,
    roles: [...roles],
    capabilities: [...tasks.names()],
    version: VERSION,
    startedAt,
    load: load.read(),
  });
  return {
    ...base,
    settings,
    tasks,
    declared,
    roles,
    startedAt,
    signal: new WorkSignal(),
    places,
    budgets: { interruptionsMax: settings.jobs.interruptionsMax, crashesMax: settings.jobs.crashesMax },
    defaults: { maxAttempts: settings.retry.attempts, timeoutMs: settings.jobs.timeoutMs },
    traffic,
    tracing,
    spans,
    metrics,
    watch,
    watchdog,
    load,
    info,
  };
}

type Address = Pick<NodeInfo, "url" | "address" | "httpPort">;

/**
 * How others reach us: as it was set, or the address that we listen on; of all addresses, the host's name. Resolved once,
 * because a node alone describes itself with every request.
 */
function addressOf(http: Settings["http"], hostname: string): (listening: string | null) => Address {
  let known: Address = { url: null, address: null, httpPort: null };
  let knownFor: string | null = null;
  const nowhere = known;
  return (listening) => {
    if (listening === knownFor) return known;
    knownFor = listening;
    if (listening === null) return (known = nowhere);
    const url = new URL(listening);
    if (http.host === "0.0.0.0" || http.host === "::") url.hostname = hostname;
    const address = url.hostname.replace(/^\[|\]$/g, "");
    return (known = { url: http.url || url.origin, address, httpPort: Number(url.port) });
  };
}

export interface PlatformOptions extends Partial<
  Pick<Platform, "clock" | "random" | "files" | "machine" | "log">
> {
  /** Everything, as `loadSettings` gives it; without it the environment and a `baton.yaml` are read. */
  readonly settings?: Settings;
  /** Tasks defined in code, in addition to those from the folders in `settings.tasks`. */
  readonly tasks?: readonly AnyTask[];
  /** Of its tasks, in addition to those that stand in the tasks themselves. */
  readonly schedules?: readonly CodeSchedule[];
  /** What a node-controller above this node reports about itself, shown with the node; null before its first report. */
  readonly supervised?: () => NodeLoad["supervised"] | null;
}
