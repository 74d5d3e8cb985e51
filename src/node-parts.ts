/** What a node is made of: everything is built and wired here, and nowhere else. */

import { accessParts } from "./access-parts.ts";
import type { NodeServices } from "./api/services.ts";
import { openChannels } from "./channels/open.ts";
import { authorOf } from "./cluster/author.ts";
import { ClusterView } from "./cluster/cluster-view.ts";
import { InFlight } from "./cluster/in-flight.ts";
import { Readiness } from "./cluster/readiness.ts";
import { fabricOf, isPushed } from "./config/fabric.ts";
import { openController } from "./controller-parts.ts";
import { openInsight } from "./insight-parts.ts";
import { openJournal } from "./journal-parts.ts";
import { openEvents } from "./event-parts.ts";
import { openCoordination } from "./coordination/open.ts";
import type { NodeRole } from "./core/node.ts";
import type { HttpServer } from "./http/server.ts";
import { retryPolicyOf } from "./core/retry.ts";
import { Followers } from "./jobs/followers.ts";
import { FunctionCalls } from "./jobs/functions.ts";
import { JobService } from "./jobs/job-service.ts";
import { JobWatchers } from "./jobs/job-watchers.ts";
import { LeaseReaper } from "./jobs/lease-reaper.ts";
import { QueueService } from "./jobs/queue-service.ts";
import { ScheduleService } from "./jobs/schedule-service.ts";
import { Submitter } from "./jobs/submitter.ts";
import { ThreadPool } from "./jobs/thread-pool.ts";
import { hearsOfWork, WakeUps } from "./jobs/wake-ups.ts";
import { Worker } from "./jobs/worker.ts";
import { servedQueues } from "./jobs/worker-settings.ts";
import { leaderParts } from "./leader-parts.ts";
import { openListener } from "./listener-parts.ts";
import { openMetrics } from "./metrics-parts.ts";
import type { PartsOptions } from "./node-options.ts";
import { ownInfo } from "./own-info-parts.ts";
import { openPeerFabric, type PeerFabric } from "./peer-fabric.ts";
import { openPushDispatch } from "./push-dispatch.ts";
import { openSharedFabric } from "./shared-fabric.ts";
import type { NewJob } from "./store/store.ts";
import { VERSION } from "./version.ts";
import { workerPlaces, workerSettings } from "./worker-parts.ts";

export type NodeParts = ReturnType<typeof buildParts>;

export function buildParts(options: PartsOptions) {
  const { settings, identity, tasks, clock, random, draining, forming } = options;
  const roles: ReadonlySet<NodeRole> = new Set(settings.roles);
  const startedAt = clock.now();
  const budgets = { interruptionsMax: settings.jobs.interruptionsMax, crashesMax: settings.jobs.crashesMax };
  const defaults = { maxAttempts: settings.jobs.maxAttempts, timeoutMs: settings.jobs.timeoutMs };

  const places = workerPlaces(settings, roles);
  const metrics = openMetrics({
    ...options,
    identity,
    startedAt,
    budgets,
    worker: places,
    parts: () => ({ store, coordination, channels, leaders, worker, load, http, push }),
  });
  const { log } = metrics;
  const fabric = fabricOf(settings);
  const { load, info } = ownInfo({
    settings,
    roles,
    tasks,
    startedAt,
    identity,
    supervised: options.supervised,
    clock,
    capacity: { slots: places.concurrency, serves: servedQueues(places) },
    onSample: metrics.onSample,
    parts: () => ({ worker, http, push, coordination, traffic: journal.traffic }),
  });
  const journal = openJournal({ store: options.store, identity, clock, log, onRefused: metrics.onRefused });
  const { store } = journal;
  const { terms } = store;
  const shared =
    fabric === "postgres"
      ? openSharedFabric({
          settings,
          identity,
          info,
          store,
          connection: options.connection,
          clock,
          random,
          log,
          onGap: () => wakeHere(),
        })
      : null;
  const peers: PeerFabric | null =
    fabric === "peers"
      ? openPeerFabric({
          settings,
          identity,
          info,
          store,
          terms,
          clock,
          random,
          log,
          draining,
          later: {
            http: () => http,
            jobs: () => jobs,
            leadership: () => leaders.scheduler,
            wakeWorker: () => worker.wake(),
          },
        })
      : null;
  const coordination = journal.coordination(
    peers?.coordination ??
      shared?.coordination ??
      openCoordination({ kind: "standalone", identity, clock, info, terms }),
  );
  const channels = shared?.channels ?? openChannels({ kind: "memory", clock, log });

  const author = authorOf(identity.name, () => leaders.scheduler.current()?.epoch ?? 0);
  const watchers = new JobWatchers(clock);
  const followers = new Followers({ channels, watchers, clock });
  const { feed: events, news } = openEvents({
    identity,
    channels,
    peerWire: peers?.eventWire ?? null,
    followers,
    clock,
    draining,
    leadership: () => leaders.scheduler,
  });
  const wakeUps = new WakeUps({
    channels,
    clock,
    // Where each node keeps its own jobs, nobody else could take them.
    audience: () =>
      store.guarantees.shared &&
      (push !== null || coordination.membership.nodes().some((node) => hearsOfWork(node, identity))),
  });

  const threads = new ThreadPool({ clock, abortGraceMs: settings.drain.cleanupMs });
  const push = isPushed(settings)
    ? openPushDispatch({
        settings,
        identity,
        roles,
        store,
        channels,
        membership: coordination.membership,
        tasks,
        budgets,
        clock,
        random,
        log,
        status: () => (draining() ? "draining" : forming() === null ? "active" : "joining"),
        queues: places,
        onTakenOver: metrics.onTakenOver(journal.onTakenOver),
        later: { leadership: () => leaders.scheduler, worker: () => worker },
      })
    : null;
  /** There is work for whoever hands it out: here the leader's dispatcher, or a worker that helps itself. */
  const wakeHere = (stored?: readonly NewJob[]): void => {
    if (push) push.dispatcher.wake();
    else worker.wake();
    controller.wake(stored);
  };
  const wakeEverybody = (): void => {
    wakeHere();
    wakeUps.tell();
  };
  const rules = { budgets, retry: retryPolicyOf(settings.retry), chance: () => random.chance() };
  const worker = new Worker({
    store,
    tasks,
    threads,
    channels,
    clock,
    identity,
    author,
    log,
    ...(push && { claims: push.inbox, results: push.sink }),
    rules,
    settings: workerSettings(settings, places, store.guarantees.shared),
    watch: metrics.watch,
    onChange: (id, status, job) => news.changed(id, status, job),
  });
  /** What fits here is taken sooner than anybody else could hear of it; what is pushed is the leader's business. */
  const handledHere = (stored: readonly NewJob[]): boolean =>
    push ? leaders.scheduler.held() !== null : worker.fits(stored);
  const submitter = new Submitter({
    node: identity.name,
    store,
    tasks,
    random,
    author,
    defaults,
    unstoredMax: settings.jobs.unstoredMax,
    spans: metrics.spans,
    onFailed: (error) => metrics.jobs.submitFailed(error),
    wakes: (stored) => channels.notifiesOnSubmit && !handledHere(stored) && wakeUps.due(),
    onStored: (stored, told, answers) => {
      news.submitted(stored, answers);
      metrics.onStored(stored, answers);
      if (!told && !channels.notifiesOnSubmit && !handledHere(stored)) wakeUps.tell();
      // A turn later: the claim then shares a commit with what the callers submit next. At once, it would commit alone,
      // and a lone caller would wait for two fsyncs each time.
      setImmediate(wakeHere, stored);
    },
  });
  const controller = openController({
    settings,
    identity,
    store,
    channels,
    membership: coordination.membership,
    submitter,
    tasks,
    rules,
    events,
    clock,
    random,
    log,
    draining,
    forming,
    onChange: (id) => followers.changed(id),
    onReady: wakeEverybody,
    onRefused: journal.refused,
    ...metrics.controller,
    reaper: () => reaper,
    leadership: () => leaders.scheduler,
  });
  const jobs = new JobService({
    store,
    submitter,
    tasks,
    channels,
    watchers: followers,
    worker: {
      get draining() {
        return draining();
      },
      ...places,
      budgets,
    },
    others: () =>
      store.guarantees.shared
        ? coordination.membership
            .nodes()
            .filter((node) => node.incarnation !== identity.incarnation && node.alive)
        : [],
    agents: () => controller.lessees(),
    onReady: wakeEverybody,
    onChange: (id, status) => news.changed(id, status),
  });
  const reaper = new LeaseReaper({
    store,
    clock,
    budgets,
    intervalMs: settings.worker.renewMs,
    // An embedded store's worker is in this very process: where it hangs, so does this.
    overdueGraceMs: store.guarantees.shared ? settings.jobs.overdueGraceMs : null,
    agentsHeardSince: () => controller.leadsSince,
    agentLeaseMs: settings.agents.leaseMs,
    log,
    sink: metrics.jobs,
    onRecovered: (id, status) => {
      controller.recovered(id);
      news.changed(id, status);
      wakeEverybody();
    },
  });
  const leaders = metrics.leading(
    leaderParts({
      settings,
      identity,
      roles,
      store,
      coordination,
      channels,
      controller,
      reaper,
      push,
      peers,
      author,
      onFired: (job) => news.fired(job),
      onChange: metrics.onTerm(journal.onTerm(() => coordination.membership.nodes())),
      watchdog: metrics.watchdog,
      scheduleSink: metrics.schedules,
      beforeLeading: options.beforeLeading,
      clock,
      random,
      log,
    }),
  );
  const schedules = new ScheduleService({
    store: peers ? { schedules: peers.schedules } : store,
    submit: (requests) => jobs.submit(requests),
    tasks,
    channels,
    clock,
    ...defaults,
    log,
  });

  const leadership = leaders.scheduler;
  const entry = accessParts({ settings, identity, store, peers, leadership, clock, random, log });
  const inFlight = new InFlight(clock);
  const insight = openInsight({
    settings,
    store,
    backlog: metrics.backlog,
    schedules,
    services: () => services,
    clock,
  });
  const services: NodeServices = {
    identity,
    version: VERSION,
    startedAt,
    clock,
    guarantees: store.guarantees,
    roles,
    cluster: new ClusterView({
      name: settings.cluster.name,
      minimumNodes: settings.cluster.minimumNodes,
      forming,
      coordination,
      channels,
      dispatch: push ? "push" : "pull",
      leadership,
      store,
      warnings: peers?.warnings ?? [],
    }),
    functions: new FunctionCalls({
      jobs,
      clock,
      timeoutMs: settings.functions.timeoutMs,
      closing: () => inFlight.closing,
    }),
    jobs,
    queues: new QueueService({ store, onReady: wakeEverybody }),
    schedules,
    leadership,
    membership: coordination.membership,
    health: new Readiness({
      draining,
      forming,
      store,
      coordination,
      leadership,
      trustMs: settings.leader.leaseMs - settings.leader.marginMs,
      clock,
    }),
    tasks,
    controller,
    journal: journal.journal,
    ...insight,
    ...metrics.services,
    peers: peers?.peers ?? null,
    placement: peers?.placement ?? null,
    access: entry.access,
  };
  const http: HttpServer | null = options.http
    ? openListener({
        settings,
        services,
        inFlight,
        log,
        clock,
        ...metrics.listener,
        ...peers?.listener,
        ...entry,
      })
    : null;
  return {
    log,
    identity,
    services,
    store,
    coordination,
    channels,
    followers,
    threads,
    leaders,
    controller,
    worker,
    load,
    reaper,
    inFlight,
    journal,
    http,
    tasks,
    peers,
    push,
  };
}
