/**
 * The controller of a node: the operations of agents and callers under `/v1`, on the leader only. Every write is made
 * under its term, which the store compares; the guard here only avoids writes that would be refused.
 *
 *   STANDBY    reads; refuses every write with NOT_LEADER
 *   LEADER     all of it
 *   DRAINING   dismisses waiting agents; accepts results, renewals and logs of its own term while that lasts
 */

import type { AgentResult } from "./result-service.ts";
import type { AgentView, Heartbeat } from "./agent-directory.ts";
import type { LeaseRequest } from "./lease-service.ts";
import type { AgentReport, ResultAnswer } from "./result-service.ts";
import type { Lease, RenewedLease } from "./lease-service.ts";
import type { UnderEpoch } from "./term-guard.ts";
import type { Caller } from "./lease-waiters.ts";
import type { ServerEvent } from "../core/server-event.ts";
import type { SubmitOptions, SubmitRequest } from "../jobs/submit/submitter.ts";
import type { Channels, Subscription } from "../channels/channels.ts";
import { topics } from "../channels/channel-names.ts";
import { agentState, leaseholder } from "../core/agent.ts";
import type { JobId, LeaseId } from "../core/ids.ts";
import { isFinal } from "../core/jobs/job.ts";
import { STANDBY_STATE, step, type RoleEvent, type RoleState } from "../core/leadership/role.ts";
import type { Term } from "../core/leadership/term.ts";
import type { JobSpans } from "../jobs/job-spans.ts";
import type { OutcomeRules } from "../jobs/run/outcome.ts";
import { emitNotRenewed } from "../jobs/run/run-writes.ts";
import type { Submitter } from "../jobs/submit/submitter.ts";
import type { TaskRegistry } from "../jobs/tasks/task-registry.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { NodeEvents } from "../platform/node-events.ts";
import type { NodeState } from "../platform/node-state.ts";
import type { Random } from "../platform/random.ts";
import { Lifecycle } from "../platform/service.ts";
import type { Outcome, Store, Submitted } from "../store/store.ts";
import { AgentDirectory } from "./agent-directory.ts";
import type { EventFeed } from "./events/event-feed.ts";
import type { Issued } from "./lease-waiters.ts";
import { LeaseService } from "./lease-service.ts";
import { ResultService, staleEpoch } from "./result-service.ts";
import { LeasedRuns } from "./leased-runs.ts";
import { StrayLeases, type StrayLeasesOptions } from "./stray-leases.ts";
import type { TermGuard } from "./term-guard.ts";

/** Every write rejects with NOT_LEADER unless this node leads, and names the epoch that it was made under. */
export type ControllerApi = Pick<
  Controller,
  "submit" | "lease" | "renew" | "results" | "report" | "heartbeat" | "removeAgent" | "agents" | "events"
>;

export interface ControllerSettings {
  readonly leaseMs: number;
  readonly staleAfterMs: number;
  readonly forgetAfterMs: number;
}

export interface ControllerOptions extends Pick<StrayLeasesOptions, "reaper"> {
  readonly state: Pick<NodeState, "agentsHeardSince" | "switchedOff">;
  readonly store: Pick<Store, "jobs" | "agents" | "purge">;
  readonly channels: Pick<Channels, "subscribe">;
  readonly guard: TermGuard;
  readonly events: EventFeed;
  readonly nodeEvents: NodeEvents;
  readonly submitter: Pick<Submitter, "submitUnder">;
  readonly tasks: Pick<TaskRegistry, "get">;
  readonly rules: OutcomeRules;
  readonly settings: ControllerSettings;
  /** Whether the jobs of our store are those of all nodes. */
  readonly sharedStore: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly spans?: JobSpans;
  readonly sink?: AgentSink;
  /** A job changed in the store, for those who follow it. */
  readonly onChange: (id: JobId) => void;
  /** Jobs went back into the queue. */
  readonly onReady: () => void;
}

/** Whoever measures. */
export interface AgentSink {
  leased(jobs: number): void;
  /** What was said of a run: the outcome, `repeated` or `refused`. */
  result(how: Outcome["kind"] | "repeated" | "refused"): void;
}

/** How often agents that were seen are stored as seen, if that is often enough for them not to look stale. */
const REFRESH_MS = 5_000;
const PURGE_MS = 60_000;
const LESSEES_MS = 1_000;
/**
 * How long a leader that drains waits for results of what it has leased. Longer, and nobody leads for longer; shorter, and more agents
 * have to take theirs to the next leader, which costs them a renewal.
 */
const GRACE_MS = 1_000;

export class Controller extends Lifecycle {
  readonly #o: ControllerOptions;
  readonly #leasedRuns: LeasedRuns;
  readonly #leases: LeaseService;
  readonly #results: ResultService;
  readonly #directory: AgentDirectory;
  readonly #strays: StrayLeases;
  #subscription: Subscription | null = null;
  #standing: RoleState = STANDBY_STATE;
  #lessees: { readonly until: number; readonly agents: Promise<readonly AgentView[]> } | null = null;

  constructor(options: ControllerOptions) {
    super();
    this.#o = options;
    const { store, guard, clock, random, log, tasks, rules, settings, events, nodeEvents, spans } = options;
    this.#leasedRuns = new LeasedRuns(rules.budgets);
    const common = { store, guard, leasedRuns: this.#leasedRuns, clock, events: nodeEvents };
    this.#leases = new LeaseService({
      ...common,
      random,
      log,
      leaseMs: settings.leaseMs,
      onLeased: (agent, issued) => this.#leased(agent, issued),
    });
    this.#results = new ResultService({
      ...common,
      tasks,
      rules,
      spans,
      onSettled: (result, answer, outcome) => this.#settled(result, answer, outcome),
      onReported: (id) => {
        options.onChange(id);
        events.emit("job.updated", { job_id: id });
      },
    });
    this.#strays = new StrayLeases({ reaper: options.reaper, switchedOff: options.state.switchedOff });
    this.#directory = new AgentDirectory({
      store,
      events: nodeEvents,
      forgetAfterMs: settings.forgetAfterMs,
      onNew: ({ name, capabilities }) => events.emit("agent.seen", { agent: name, capabilities }),
    });
  }

  protected async onStart(): Promise<void> {
    this.#standing = STANDBY_STATE;
    await this.#o.events.start();
    this.#subscription = this.#o.channels.subscribe(topics.jobsReady, () => this.#leases.wake());
  }

  protected async onStop(): Promise<void> {
    this.#follow({ event: "lost" });
    await this.#subscription?.close();
    await this.#o.events.stop();
  }

  // ---------------------------------------------------------------- jobs

  async submit(
    requests: readonly SubmitRequest[],
    options: Pick<SubmitOptions, "trace"> = {},
  ): Promise<UnderEpoch<{ readonly jobs: readonly Submitted[] }>> {
    const { guard, submitter } = this.#o;
    const term = guard.require("lead");
    const jobs = await guard.fenced(submitter.submitUnder(term, requests, options));
    return { jobs, leaderEpoch: term.epoch };
  }

  // ---------------------------------------------------------------- leases

  /** Null when there was no work in time. */
  async lease(request: LeaseRequest, caller: Caller): Promise<Lease | null> {
    const { guard, settings } = this.#o;
    const term = guard.require("lead");
    const { leaderEpoch, capabilities, queues, limit, timeoutMs, requestId, unanswered, ...sign } = request;
    if (leaderEpoch !== undefined && leaderEpoch !== term.epoch) {
      const message = `leader_epoch ${leaderEpoch} is not the current one (${term.epoch}); leave it out, or give that`;
      throw staleEpoch(null, {
        code: "STALE_EPOCH",
        field: "leader_epoch",
        message,
        leaderEpoch: term.epoch,
      });
    }
    await guard.fenced(this.#directory.seen({ ...sign, capabilities }, term));
    await this.#giveUp(sign.name, unanswered, term);
    const wanted = {
      agent: sign.name,
      requestId,
      tasks: new Set(capabilities),
      queues: queues && queues.length > 0 ? new Set(queues) : null,
      limit,
      timeoutMs,
    };
    const issued = await this.#leases.ask(wanted, caller);
    if (!issued) return null;
    const { lease, jobs } = issued;
    const { epoch, leader } = issued.term;
    return { id: lease, jobs, leaderEpoch: epoch, leader, leaseMs: settings.leaseMs };
  }

  /** Rejects with STALE_EPOCH when the lease is not held any more, or is not that agent's. */
  async renew(agent: string, lease: string): Promise<UnderEpoch<RenewedLease>> {
    const { guard, store, settings, nodeEvents } = this.#o;
    const term = guard.require("finish");
    const { leaseMs } = settings;
    const id = lease as LeaseId;
    const theirs = leaseholder(lease) === agent;
    const { held, cancelled } = theirs
      ? await guard.fenced(nodeEvents.fenced("jobs.renew", store.jobs.renew(id, leaseMs, term)))
      : { held: false, cancelled: [] };
    if (held) return { leaseMs, cancelled, leaderEpoch: term.epoch };
    if (theirs) emitNotRenewed(nodeEvents, id);
    const message = theirs
      ? `${lease} has run out or was given away; what runs under it does not count any more`
      : `${lease} is not a lease of ${agent}`;
    throw staleEpoch(null, { code: "STALE_EPOCH", field: "lease_id", message, leaderEpoch: term.epoch });
  }

  /** One answer a result, in their order. */
  results(results: readonly AgentResult[]): Promise<readonly ResultAnswer[]> {
    return this.#results.settle(results);
  }

  /** How many lines were taken. Rejects with STALE_EPOCH. */
  report(report: AgentReport): Promise<number> {
    return this.#results.report(report);
  }

  // ---------------------------------------------------------------- agents

  async heartbeat({ unanswered, ...sign }: Heartbeat): Promise<UnderEpoch<object>> {
    const { guard } = this.#o;
    const term = guard.require("lead");
    await guard.fenced(this.#directory.seen(sign, term));
    await this.#giveUp(sign.name, unanswered, term);
    return { leaderEpoch: term.epoch };
  }

  async removeAgent(name: string): Promise<boolean> {
    const { guard, events } = this.#o;
    const term = guard.require("lead");
    const removed = await guard.fenced(this.#directory.remove(name, term));
    if (removed) events.emit("agent.removed", { agent: name });
    return removed;
  }

  async agents(withRemoved: boolean): Promise<readonly AgentView[]> {
    const { clock, settings } = this.#o;
    const agents = await this.#directory.list(withRemoved);
    const now = clock.now();
    return agents.map((agent) => ({ ...agent, state: agentState(agent, now, settings.staleAfterMs) }));
  }

  /**
   * Those who could lease the jobs of our store: of one that others write to as well, all; of one of our own, only while we lead. Asked
   * for with every look at a job that waits, so that a second old is good enough.
   */
  async lessees(): Promise<readonly AgentView[]> {
    const { clock, guard, sharedStore } = this.#o;
    if (!sharedStore && guard.role !== "LEADER") return [];
    if (this.#lessees === null || clock.monotonic() >= this.#lessees.until) {
      const until = clock.monotonic() + LESSEES_MS;
      const agents = this.agents(false);
      agents.catch(() => (this.#lessees = null));
      this.#lessees = { until, agents };
    }
    return this.#lessees.agents;
  }

  /** After the event with this id, as far as it is kept; null for what happens from now on. */
  events(since: string | null, signal: AbortSignal): AsyncIterable<ServerEvent> {
    return this.#o.events.follow(since, signal);
  }

  // ---------------------------------------------------------------- for the node

  /** There may be work for agents: these jobs, or of any kind. */
  wake(jobs?: readonly { readonly task: string }[]): void {
    this.#leases.wake(jobs);
  }

  /** The job was taken from a worker or agent that let its lease run out. */
  recovered(id: JobId): void {
    const run = this.#leasedRuns.end(id);
    this.#o.events.emit("lease.expired", {
      job_id: id,
      ...(run && { agent: run.agent, lease_id: run.job.lease, job_epoch: run.job.jobEpoch }),
    });
  }

  /** What the leader does for agents, until its term is over. */
  async duty(term: Term, signal: AbortSignal, clock = this.#o.clock): Promise<void> {
    const { settings, state, log } = this.#o;
    const everyMs = Math.min(REFRESH_MS, settings.staleAfterMs / 3);
    let purgesAt = clock.monotonic();
    state.agentsHeardSince = purgesAt;
    this.#follow({ event: "acquired", term });
    try {
      while (!signal.aborted) {
        try {
          await this.#strays.clear(term);
          await this.#directory.refresh(this.#leases.agents(), term);
          if (clock.monotonic() >= purgesAt) {
            await this.#directory.purge(term);
            purgesAt = clock.monotonic() + PURGE_MS;
          }
        } catch (error) {
          // Not thrown: the agents that wait here would be sent away with it.
          if (!signal.aborted) log.warn({ err: error }, "could not store which agents were seen, or left");
        }
        await clock.sleep(everyMs, signal);
      }
    } finally {
      state.agentsHeardSince = null;
      this.#follow({ event: "lost" });
    }
  }

  /** Gives out nothing more, and waits a little for what was given out. Resolves when the term may be given up. */
  async drain(hurry: AbortSignal): Promise<void> {
    this.#follow({ event: "drain" });
    const over = new AbortController();
    const late = this.#o.clock.sleep(GRACE_MS, AbortSignal.any([hurry, over.signal]));
    await Promise.race([this.#leasedRuns.emptied(), late]);
    over.abort();
    this.#follow({ event: "stepped_down" });
  }

  /** The node takes work again. */
  resume(): void {
    this.#follow({ event: "resume" });
  }

  /** Answers that the agent never got. */
  async #giveUp(agent: string, requests: readonly string[] = [], term: Term): Promise<void> {
    if (requests.length === 0) return;
    this.#leases.forsake(agent, requests);
    await this.#o.guard.fenced(this.#strays.unanswered(agent, requests, term));
  }

  /** The lock is the elector's business, and an agent beside us that of whoever keeps both running. */
  #follow(event: RoleEvent): void {
    const { standing, actions } = step(this.#standing, event);
    this.#standing = standing;
    for (const action of actions) {
      if (action !== "stop_leasing" && action !== "close_writes") continue;
      this.#leases.close();
      if (action === "stop_leasing") continue;
      this.#leasedRuns.clear();
      this.#directory.forget();
    }
  }

  #leased(agent: string, { lease, jobs }: Issued): void {
    const { events, onChange, spans, clock } = this.#o;
    if (spans?.on) spans.claimed(jobs, clock.now(), { "baton.agent": agent });
    this.#o.sink?.leased(jobs.length);
    for (const { id, task, jobEpoch } of jobs) {
      onChange(id);
      events.emit("job.leased", { job_id: id, job_epoch: jobEpoch, task, agent, lease_id: lease });
    }
  }

  #settled(result: AgentResult, answer: ResultAnswer, outcome: Outcome | null): void {
    const { events, nodeEvents, onChange, onReady, sink } = this.#o;
    const repeated = answer.accepted && answer.replayed;
    sink?.result(!answer.accepted || !outcome ? "refused" : repeated ? "repeated" : outcome.kind);
    const { job, jobEpoch, lease } = result;
    const named = { job_id: job, job_epoch: jobEpoch, agent: leaseholder(lease), lease_id: lease };
    if (!answer.accepted) {
      const { code, field, leaderEpoch: current } = answer.refusal;
      events.emit("result.rejected", { ...named, error: code, field });
      // With an outcome it was the store that refused it.
      if (outcome === null && field === "leader_epoch") {
        const refusal = { write: "agent.result", carried: result.leaderEpoch, current, job } as const;
        nodeEvents.emit("write.refused", refusal);
      }
      return;
    }
    const { status, replayed } = answer;
    if (replayed) return events.emit("result.duplicate", { ...named, status });
    onChange(job);
    events.emit("result.accepted", { ...named, status });
    events.emit(isFinal(status) ? `job.${status}` : "job.updated", { job_id: job, status });
    if (outcome?.kind === "retry") this.#leases.due(outcome.delayMs);
    else if (!isFinal(status)) onReady();
  }
}
