/**
 * The controller of a node: the operations of agents and callers under `/v1`, on the leader only. Every write is made
 * under its term, which the store compares; the guard here only avoids writes that would be refused.
 *
 *   STANDBY    reads; refuses every write with NOT_LEADER
 *   LEADER     all of it
 *   DRAINING   dismisses waiting agents; accepts results, renewals and logs of its own term while that lasts
 */

import type { ServerEvent } from "../platform/feed.ts";
import type { Channels, Subscription } from "../channels/channels.ts";
import { topics } from "../channels/channel-names.ts";
import { agentState, leaseholder } from "../core/agent.ts";
import type { BatonError } from "../core/errors.ts";
import type { JobId, LeaseId } from "../core/ids.ts";
import { isFinal } from "../core/jobs/job.ts";
import type { Term } from "../core/leadership/term.ts";
import type { JobSpans } from "../jobs/job-spans.ts";
import type { OutcomeRules } from "../jobs/run/run-outcome.ts";
import { emitNotRenewed } from "../jobs/run/run-writes.ts";
import type { LeaseReaper } from "../jobs/recover/lease-reaper.ts";
import type { Submitter, SubmitOptions, SubmitRequest } from "../jobs/submit/submitter.ts";
import type { TaskRegistry } from "../jobs/tasks/task-registry.ts";
import { Cached } from "../platform/cached.ts";
import { repeat, within } from "../platform/loop.ts";
import type { Platform } from "../platform/platform.ts";
import { Lifecycle } from "../platform/service.ts";
import type { Outcome, Renewal, Store, Submitted } from "../store/store.ts";
import { agentDirectory, type AgentDirectory, type AgentView, type Heartbeat } from "./agent-directory.ts";
import type { EventFeed } from "./events/event-feed.ts";
import { LeaseService, type LeaseRequest } from "./lease-service.ts";
import type { Caller, Issued } from "./lease-waiters.ts";
import { LeasedRuns, strayLeases } from "./leased-runs.ts";
import {
  ResultService,
  stale,
  staleEpoch,
  type AgentReport,
  type AgentResult,
  type ResultAnswer,
} from "./result-service.ts";
import type { TermGuard, UnderEpoch } from "./term-guard.ts";

export type Lease = Issued & { readonly leaseMs: number };

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

type ControllerPlatform = Pick<Platform, "clock" | "random" | "log" | "state" | "events">;

export interface ControllerOptions {
  readonly store: Pick<Store, "jobs" | "agents" | "purge">;
  readonly channels: Pick<Channels, "subscribe">;
  readonly guard: TermGuard;
  readonly feed: EventFeed;
  readonly reaper: Pick<LeaseReaper, "recover">;
  readonly submitter: Pick<Submitter, "submitUnder">;
  readonly tasks: Pick<TaskRegistry, "get">;
  readonly rules: OutcomeRules;
  readonly settings: ControllerSettings;
  /** Whether the jobs of our store are those of all nodes. */
  readonly sharedStore: boolean;
  readonly spans?: JobSpans;
  readonly sink?: AgentSink;
  readonly onChange: (id: JobId) => void;
  readonly onReady: () => void;
}

export interface AgentSink {
  leased(jobs: number): void;
  /** What was said of a run: the outcome, `repeated` or `refused`. */
  result(how: Outcome["kind"] | "repeated" | "refused"): void;
}

/** How often agents that were seen are stored as seen, if that is often enough for them not to look stale. */
const REFRESH_MS = 5_000;
const PURGE_MS = 60_000;
const LESSEES_MS = 1_000;
/** How long a leader that drains waits for results. Longer, and nobody leads for longer; shorter, and more agents have to renew first. */
const GRACE_MS = 1_000;

export class Controller extends Lifecycle {
  readonly #platform: ControllerPlatform;
  readonly #o: ControllerOptions;
  readonly #leasedRuns: LeasedRuns;
  readonly #leases: LeaseService;
  readonly #results: ResultService;
  readonly #directory: AgentDirectory;
  readonly #strays: ReturnType<typeof strayLeases>;
  #subscription: Subscription | null = null;
  readonly #lessees: Cached<readonly AgentView[]>;

  constructor(platform: ControllerPlatform, options: ControllerOptions) {
    super();
    this.#platform = platform;
    this.#o = options;
    const { store, guard, tasks, rules, settings, feed, spans } = options;
    this.#lessees = new Cached(platform.clock, LESSEES_MS, () => this.agents(false));
    this.#leasedRuns = new LeasedRuns(rules.budgets);
    const common = { store, guard, leasedRuns: this.#leasedRuns };
    this.#leases = new LeaseService(platform, {
      ...common,
      leaseMs: settings.leaseMs,
      onLeased: (agent, issued) => this.#leased(agent, issued),
    });
    this.#results = new ResultService(platform, {
      ...common,
      tasks,
      rules,
      spans,
      onSettled: (result, answer, outcome) => this.#settled(result, answer, outcome),
      onReported: (id) => {
        options.onChange(id);
        feed.emit("job.updated", { job_id: id });
      },
    });
    this.#strays = strayLeases(platform, options.reaper, platform.state.switchedOff);
    this.#directory = agentDirectory(platform, {
      store,
      forgetAfterMs: settings.forgetAfterMs,
      onNew: ({ name, capabilities }) => feed.emit("agent.seen", { agent: name, capabilities }),
    });
  }

  protected async onStart(): Promise<void> {
    await this.#o.feed.start();
    this.#subscription = this.#o.channels.subscribe(topics.jobsReady, () => this.#leases.wake());
  }

  protected async onStop(): Promise<void> {
    this.#endTerm();
    await this.#subscription?.close();
    await this.#o.feed.stop();
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
      throw staleEpoch(null, stale("leader_epoch", message, term.epoch));
    }
    await guard.fenced(this.#directory.seen({ ...sign, capabilities }, term));
    await this.#giveUp(sign.name, unanswered, term);
    const asked = { agent: sign.name, requestId, limit, timeoutMs };
    const wanted = { tasks: new Set(capabilities), queues: queues?.length ? new Set(queues) : null };
    const issued = await this.#leases.ask({ ...asked, ...wanted }, caller);
    return issued && { ...issued, leaseMs: settings.leaseMs };
  }

  /** Rejects with STALE_EPOCH when the lease is not held any more, or is not that agent's. */
  async renew(
    agent: string,
    lease: string,
  ): Promise<UnderEpoch<Pick<Renewal, "cancelled"> & Pick<Lease, "leaseMs">>> {
    const { guard, store, settings } = this.#o;
    const { events } = this.#platform;
    const term = guard.require("finish");
    const { leaseMs } = settings;
    const id = lease as LeaseId;
    const refused = (why: string): BatonError =>
      staleEpoch(null, stale("lease_id", `${lease} ${why}`, term.epoch));
    if (leaseholder(lease) !== agent) throw refused(`is not a lease of ${agent}`);
    const renewing = events.fenced("jobs.renew", store.jobs.renew(id, leaseMs, term));
    const { held, cancelled } = await guard.fenced(renewing);
    if (held) return { leaseMs, cancelled, leaderEpoch: term.epoch };
    emitNotRenewed(events, id);
    throw refused("has run out or was given away; what runs under it does not count any more");
  }

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
    const { guard, feed } = this.#o;
    const term = guard.require("lead");
    const removed = await guard.fenced(this.#directory.remove(name, term));
    if (removed) feed.emit("agent.removed", { agent: name });
    return removed;
  }

  async agents(withRemoved: boolean): Promise<readonly AgentView[]> {
    const { staleAfterMs } = this.#o.settings;
    const agents = await this.#o.store.agents.list(withRemoved);
    const now = this.#platform.clock.now();
    return agents.map((agent) => ({ ...agent, state: agentState(agent, now, staleAfterMs) }));
  }

  /** Those who could lease the jobs of our store, up to a second ago: asked for with every look at a job that waits. */
  async lessees(): Promise<readonly AgentView[]> {
    const { guard, sharedStore } = this.#o;
    return !sharedStore && guard.role !== "LEADER" ? [] : this.#lessees.read();
  }

  /** After the event with this id, as far as it is kept; null for what happens from now on. */
  events(since: string | null, signal: AbortSignal): AsyncIterable<ServerEvent> {
    return this.#o.feed.follow(since, signal);
  }

  // ---------------------------------------------------------------- for the node

  wake(jobs?: readonly { readonly task: string }[]): void {
    this.#leases.wake(jobs);
  }

  /** The job was taken from a worker or agent that let its lease run out. */
  recovered(id: JobId): void {
    const run = this.#leasedRuns.end(id);
    this.#o.feed.emit("lease.expired", {
      job_id: id,
      ...(run && { agent: run.agent, lease_id: run.job.lease, job_epoch: run.job.jobEpoch }),
    });
  }

  async duty(term: Term, signal: AbortSignal, clock = this.#platform.clock): Promise<void> {
    const { state, log } = this.#platform;
    const everyMs = Math.min(REFRESH_MS, this.#o.settings.staleAfterMs / 3);
    let purgesAt = clock.monotonic();
    state.agentsHeardSince = purgesAt;
    const step = async (): Promise<number> => {
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
      return everyMs;
    };
    await repeat(clock, signal, step).finally(() => {
      state.agentsHeardSince = null;
      this.#endTerm();
    });
  }

  /** Gives out nothing more, and waits a little for what was given out. Resolves when the term may be given up. */
  async drain(hurry: AbortSignal): Promise<void> {
    this.#leases.close();
    await within(this.#platform.clock, GRACE_MS, this.#leasedRuns.emptied(), hurry);
    this.#endTerm();
  }

  async #giveUp(agent: string, requests: readonly string[] = [], term: Term): Promise<void> {
    if (requests.length === 0) return;
    this.#leases.forsake(agent, requests);
    await this.#o.guard.fenced(this.#strays.unanswered(agent, requests, term));
  }

  /** What is known of leases and agents holds for one term. */
  #endTerm(): void {
    this.#leases.close();
    this.#leasedRuns.clear();
    this.#directory.forget();
  }

  #leased(agent: string, { lease, jobs }: Issued): void {
    const { feed, onChange, spans } = this.#o;
    if (spans?.on) spans.claimed(jobs, this.#platform.clock.now(), { "baton.agent": agent });
    this.#o.sink?.leased(jobs.length);
    for (const { id, task, jobEpoch } of jobs) {
      onChange(id);
      feed.emit("job.leased", { job_id: id, job_epoch: jobEpoch, task, agent, lease_id: lease });
    }
  }

  #settled(result: AgentResult, answer: ResultAnswer, outcome: Outcome | null): void {
    const { feed, onChange, onReady, sink } = this.#o;
    const repeated = answer.accepted && answer.replayed;
    sink?.result(!answer.accepted || !outcome ? "refused" : repeated ? "repeated" : outcome.kind);
    const { job, jobEpoch, lease } = result;
    const named = { job_id: job, job_epoch: jobEpoch, agent: leaseholder(lease), lease_id: lease };
    if (!answer.accepted) {
      const { code, field, leaderEpoch: current } = answer.refusal;
      feed.emit("result.rejected", { ...named, error: code, field });
      // With an outcome it was the store that refused it.
      if (outcome === null && field === "leader_epoch") {
        const refusal = { write: "agent.result", carried: result.leaderEpoch, current, job } as const;
        this.#platform.events.emit("write.refused", refusal);
      }
      return;
    }
    const { status, replayed } = answer;
    if (replayed) return feed.emit("result.duplicate", { ...named, status });
    onChange(job);
    feed.emit("result.accepted", { ...named, status });
    feed.emit(isFinal(status) ? `job.${status}` : "job.updated", { job_id: job, status });
    if (outcome?.kind === "retry") this.#leases.due(outcome.delayMs);
    else if (!isFinal(status)) onReady();
  }
}
