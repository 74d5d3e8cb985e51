/**
 * What a node has beside the parts of every node when jobs are pushed: the leader's dispatcher, the worker's ends, and the owner, which
 * writes down what happens to the jobs that are its business.
 */

import type { Channels } from "./channels/channels.ts";
import type { Settings } from "./config/settings.ts";
import type { Leadership, Membership } from "./coordination/coordination.ts";
import type { Budgets } from "./core/job.ts";
import type { NodeIdentity, NodeLoad, NodeRole, NodeStatus } from "./core/node.ts";
import type { Term } from "./core/term.ts";
import { Dispatcher } from "./dispatch/dispatcher.ts";
import { DispatchInbox } from "./dispatch/dispatch-inbox.ts";
import { StatusSink } from "./dispatch/status-sink.ts";
import type { TaskRegistry } from "./jobs/task-registry.ts";
import type { WorkerSettings } from "./jobs/worker-settings.ts";
import type { TakenOver } from "./ownership/handoff-subscriber.ts";
import { Owner } from "./ownership/owner.ts";
import type { Clock } from "./platform/clock.ts";
import type { Log } from "./platform/log.ts";
import type { Random } from "./platform/random.ts";
import { consumerOf } from "./shared-fabric.ts";
import type { Store } from "./store/store.ts";

export interface PushDispatchOptions {
  readonly settings: Settings;
  readonly identity: NodeIdentity;
  readonly roles: ReadonlySet<NodeRole>;
  readonly store: Store;
  readonly channels: Channels;
  readonly membership: Membership;
  readonly tasks: TaskRegistry;
  readonly budgets: Budgets;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly status: () => NodeStatus;
  readonly queues: Pick<WorkerSettings, "concurrency" | "queues" | "exceptQueues">;
  readonly onTakenOver: (taken: TakenOver) => void;
  /** Built later, of what is made here. */
  readonly later: {
    readonly leadership: () => Leadership;
    readonly worker: () => { readonly active: number; readonly pace: number; wake(): void };
  };
}

export type PushDispatch = ReturnType<typeof openPushDispatch>;

export function openPushDispatch(options: PushDispatchOptions) {
  const { settings, identity, roles, store, channels, membership, clock, random, log, later } = options;
  const ownership = store.ownership!;
  const common = { channels, clock, log };
  const { heartbeatMs } = settings.node;
  const { timeoutMs } = settings.dispatch;
  const isGone = (incarnation: string): boolean =>
    membership.nodes().some((node) => node.incarnation === incarnation && node.status === "dead");

  const dispatcher = new Dispatcher({
    ...common,
    ownership,
    budgets: options.budgets,
    isGone,
    settings: { timeoutMs, heartbeatMs },
  });
  const inbox = new DispatchInbox({
    ...common,
    ownership,
    helpYourself: (request) => store.jobs.claim(request),
    identity,
    budgets: options.budgets,
    tasks: options.tasks,
    settings: { ...options.queues, heartbeatMs },
    load: () => ({ running: later.worker().active, pace: later.worker().pace }),
    onMessages: () => later.worker().wake(),
  });
  const sink = new StatusSink({ ...common, store, identity, receiptMs: timeoutMs });
  const { handoff, rebalance } = settings;
  const owner = roles.has("scheduler")
    ? new Owner({
        ...common,
        ownership,
        membership,
        identity,
        random,
        status: options.status,
        leaderEpoch: () => later.leadership().held()?.epoch ?? null,
        dispatches: () => dispatcher.channels(),
        onTakenOver: options.onTakenOver,
        settings: {
          heartbeatMs,
          ackMs: handoff.ackTimeoutMs,
          tries: handoff.tries,
          orphanWaitMs: handoff.orphanWaitMs,
          hardMs: handoff.hardTimeoutMs,
          orphanCheckMs: handoff.orphanCheckMs,
          rebalance: rebalance.enabled,
          rebalanceMs: rebalance.intervalMs,
          rebalanceRatio: rebalance.ratio,
        },
      })
    : null;

  return {
    dispatcher,
    inbox,
    sink,
    owner,
    /** Of the leader of the scheduler role, which has an owner. */
    duties: {
      dispatch: (term: Term, signal: AbortSignal) => dispatcher.duty(term, signal),
      ...(owner && { orphans: (term: Term, signal: AbortSignal) => owner.orphanDuty(term, signal) }),
    },
    load: (): Pick<NodeLoad, "owned" | "drain"> => {
      const drain = owner?.progress();
      return owner ? { owned: owner.jobs, ...(drain && { drain }) } : {};
    },
    /** What these lives had in hand goes to others now. */
    async bury(lives: readonly NodeIdentity[], term: Term): Promise<void> {
      await owner?.disown(lives, term);
      await Promise.all(lives.map(async (life) => channels.takeOver?.(consumerOf(life))));
    },
  };
}
