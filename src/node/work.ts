/**
 * The fourth layer: jobs are submitted, run, leased to agents, recovered and followed here.
 *
 *   submitter ──stored──> signal (a turn later) ──> worker, or the leader's dispatcher; the controller, for agents
 *        '──> wake-ups: the other nodes, unless the jobs are certainly taken here
 */

import { authorOf } from "../leadership/leader-elections.ts";
import { InFlight } from "../platform/in-flight.ts";
import type { LeaderElections } from "../leadership/leader-elections.ts";
import { peerEventWire } from "../controller/events/peer-event-wire.ts";
import { PEER_ROUTES } from "../peers/rpc/peer-routes.ts";
import { isPushed } from "../config/fabric.ts";
import { Controller } from "../controller/controller.ts";
import { EventFeed } from "../controller/events/event-feed.ts";
import { channelEventWire } from "../controller/events/event-wire.ts";
import { jobEventEmitter } from "../controller/events/job-event-emitter.ts";
import { termGuard } from "../controller/term-guard.ts";
import { roleOf } from "../core/leadership/role.ts";
import { Followers } from "../jobs/follow/followers.ts";
import { jobService, type Jobs } from "../jobs/job-service.ts";
import { LeaseReaper } from "../jobs/recover/lease-reaper.ts";
import { queueService } from "../jobs/queue-service.ts";
import { DeclarationWriter } from "../jobs/schedules/declaration-writer.ts";
import { DeclaredSchedules } from "../jobs/schedules/declared-schedules.ts";
import { RunningVersions } from "../jobs/schedules/running-versions.ts";
import { scheduleNotifier, scheduleService } from "../jobs/schedules/schedule-service.ts";
import { Submitter } from "../jobs/submit/submitter.ts";
import { KnownTasks } from "../jobs/tasks/known-tasks.ts";
import { ThreadPool } from "../jobs/run/thread-pool.ts";
import { hearsOfWork, workNotifier } from "../jobs/submit/work-notifier.ts";
import { Worker, type WorkerOptions } from "../jobs/run/worker.ts";
import { storePorts } from "../jobs/run/worker-ports.ts";
import type { NewJob } from "../store/store.ts";
import type { Backend } from "./backend.ts";
import type { NodePlatform } from "./platform.ts";

/**
 * The embedded store can be opened by one process only, so its file lock proves that a claimant is alive: leases there
 * do not run out (a hundred years), and a blocked event loop does not cost a node its own jobs. After a crash the next
 * start takes them back at once.
 */
const EMBEDDED_LEASE_MS = 100 * 365 * 24 * 3_600_000;
/** Its claims run on the main thread: more would not be faster, and hold it for longer. */
const EMBEDDED_PREFETCH_MAX = 2_000;

export type Work = Awaited<ReturnType<typeof work>>;

export async function work(
  p: NodePlatform,
  b: Backend,
  e: LeaderElections,
  around?: WorkerOptions["around"],
) {
  const { settings, identity, state, events, signal, tasks, budgets, spans, clock, random } = p;
  const { store, channels, membership } = b;
  const { shared } = store.guarantees;
  const { scheduler: leadership } = e;
  const rules = { budgets, retry: settings.retry, chance: () => random.chance() };
  const author = authorOf(identity.name, () => leadership.current()?.epoch ?? 0);

  const followers = new Followers(p, channels);
  const peerWire = b.peers && peerEventWire(p, b.peers);
  const feed = new EventFeed(p, {
    wire: peerWire ?? (channels.shared ? channelEventWire(channels) : null),
    leads: () => leadership.held()?.epoch ?? null,
    standing: () => ({
      role: roleOf(leadership.held(), state.draining),
      epoch: leadership.current()?.epoch ?? null,
      leader: leadership.current()?.leader ?? null,
    }),
  });
  const news = jobEventEmitter(p, feed, followers);
  // Where each node has its own jobs, no other node could take them.
  const hasListeners = (): boolean =>
    shared && (isPushed(settings) || membership.nodes().some((node) => hearsOfWork(node, identity)));
  const wakeUps = workNotifier(p, channels, hasListeners);
  const announce = (): void => {
    signal.raise();
    wakeUps.notify();
  };

  const threads = new ThreadPool(p, settings.drain.cleanupMs);
  const push = isPushed(settings) ? (await import("./work-push.ts")).pushWork(p, b, e) : null;
  /** What fits here is taken sooner than another node could hear of it; what is pushed is handed out by the leader. */
  const handledHere = (stored: readonly NewJob[]): boolean =>
    push ? leadership.held() !== null : state.readings.fits(stored);
  const knownTasks = new KnownTasks(p, { store, tasks, nodes: () => membership.nodes() });
  const submitter = new Submitter(p, {
    store,
    tasks,
    knownTasks,
    author,
    defaults: p.defaults,
    unstoredMax: settings.jobs.unstoredMax,
    spans,
    wakes: (stored) => channels.notifiesOnSubmit && !handledHere(stored) && wakeUps.due(),
    onStored: (stored, notified) => {
      if (!notified && !channels.notifiesOnSubmit && !handledHere(stored)) wakeUps.notify();
      // A turn later: the claim then shares a commit with what the callers submit next. At once, it would commit alone,
      // and a lone caller would wait for two fsyncs each time.
      void clock.turn().then(() => signal.raise(stored));
    },
  });

  const reaper = new LeaseReaper(p, {
    store,
    budgets,
    intervalMs: settings.worker.renewMs,
    // An embedded store's worker is in this very process: where it hangs, so does this.
    overdueGraceMs: shared ? settings.jobs.overdueGraceMs : null,
    agentLeaseMs: settings.agents.leaseMs,
  });
  const controller = new Controller(p, {
    store,
    channels,
    guard: termGuard(p, leadership, membership),
    feed,
    reaper,
    submitter,
    tasks,
    rules,
    settings: settings.agents,
    sharedStore: shared,
    spans,
    sink: p.metrics.agents,
    onChange: (id) => followers.changed(id),
    onReady: announce,
  });
  const jobs = jobService({
    store,
    submitter,
    tasks,
    channels,
    watchers: followers,
    worker: {
      get draining() {
        return state.draining;
      },
      ...p.places,
      budgets,
    },
    others: () =>
      shared
        ? membership.nodes().filter((node) => node.incarnation !== identity.incarnation && node.alive)
        : [],
    agents: () => controller.lessees(),
    onReady: announce,
    onChange: (id, status) => news.changed(id, status),
  });
  const onScheduleChanged = scheduleNotifier(p.log, channels);
  const peers =
    b.peers && (await import("./work-peers.ts")).peerWork(p, b.peers, e, { store, jobs, onScheduleChanged });
  /** A job that a repeated key was answered with must not be on its way out. */
  const submit: Jobs["submit"] = async (requests, options) => {
    const submitted = await jobs.submit(requests, options);
    for (const { id, existed } of submitted) if (existed) await peers?.placement.retracted.confirm(id);
    return submitted;
  };
  const leaseMs = shared ? settings.worker.leaseMs : EMBEDDED_LEASE_MS;
  const { renewMs } = settings.worker;
  const worker = new Worker(p, {
    tasks,
    threads,
    channels,
    author,
    ...storePorts(p, { store, leaseMs, renewMs }),
    ...(push && { claims: push.inbox, results: push.sink }),
    rules,
    settings: {
      ...p.places,
      leaseMs,
      renewMs,
      prefetchMax: Math.min(settings.worker.prefetchMax, shared ? Infinity : EMBEDDED_PREFETCH_MAX),
      abortGraceMs: settings.drain.cleanupMs,
    },
    watch: p.watch,
    jobs: { jobs, clock, submit: async (request, trace) => (await submit([request], { trace }))[0]! },
    around,
    onChange: (id, status, job) => news.changed(id, status, job),
    onEnded: (ended) => events.emit("run.ended", ended),
  });
  state.publish({ running: () => worker.active, fits: (stored) => worker.fits(stored) });
  push?.dispatched.subscribe(() => worker.wake());
  // A turn later: its callers are answered first.
  submitter.onGiven((job) => void clock.turn().then(() => worker.give(job)));

  // Where jobs are pushed, the leader's dispatcher hands them out; elsewhere the worker helps itself.
  signal.subscribe(push ? () => push.dispatcher.wake() : () => worker.wake());
  signal.subscribe((stored) => controller.wake(stored));
  events.on("jobs.recovered", (recovered) => {
    for (const { id } of recovered) controller.recovered(id);
    announce();
  });

  const alone = b.alone;
  const writer =
    peers?.declarationWriter ??
    new DeclarationWriter(p, {
      schedules: store.schedules,
      versions: new RunningVersions(clock, { nodes: () => membership.nodes(), alone }),
      onChanged: onScheduleChanged,
    });
  const declared = new DeclaredSchedules(p, {
    declarations: p.declared,
    writer,
    declare: peers?.declarations.declare ?? ((...given) => writer.take(...given)),
    leads: () => leadership.held() !== null,
    alone,
  });
  const schedules = scheduleService(p, {
    store: peers ?? store,
    submit: (requests) => jobs.submit(requests),
    tasks,
    knownTasks,
    channels,
    ...p.defaults,
  });
  return {
    author,
    news,
    followers,
    threads,
    push,
    worker,
    reaper,
    controller,
    jobs,
    submit,
    knownTasks,
    queues: queueService(p, store, peers?.pauses ?? store.queues, announce),
    schedules,
    declared,
    peers,
    mounts: {
      ...peers?.mounts,
      ...(peerWire && { [PEER_ROUTES.events.path]: peerWire.handle }),
    },
    inFlight: new InFlight(clock),
  };
}
