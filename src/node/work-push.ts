/**
 * The services for push dispatch: the leader's dispatcher, the worker's inbox, and the owner, which writes the events of
 * the jobs that are assigned to it.
 */

import type { LeaderElections } from "../leadership/leader-elections.ts";
import { consumerName } from "../channels/channel-names.ts";
import type { NodeIdentity } from "../core/node.ts";
import type { Term } from "../core/leadership/term.ts";
import { Dispatcher } from "../push/dispatch/dispatcher.ts";
import { DispatchInbox } from "../push/dispatch/dispatch-inbox.ts";
import { StatusSink } from "../push/dispatch/status-sink.ts";
import { Owner } from "../push/ownership/owner.ts";
import { WorkSignal } from "../platform/work-signal.ts";
import type { Backend } from "./backend.ts";
import type { NodePlatform } from "./platform.ts";

export type Push = ReturnType<typeof pushWork>;

export function pushWork(p: NodePlatform, b: Backend, { scheduler }: LeaderElections) {
  const { settings, roles, state, tasks, budgets, places } = p;
  const { store, channels, membership } = b;
  const ownership = store.ownership!;
  const { heartbeatMs } = settings.node;
  const { timeoutMs } = settings.dispatch;
  const dispatched = new WorkSignal();

  const dispatcher = new Dispatcher(p, {
    ownership,
    channels,
    budgets,
    isGone: (incarnation) =>
      membership.nodes().some((node) => node.incarnation === incarnation && node.status === "dead"),
    timeoutMs,
    heartbeatMs,
  });
  const inbox = new DispatchInbox(p, {
    ownership,
    store,
    channels,
    budgets,
    tasks,
    settings: { ...places, heartbeatMs },
    signal: dispatched,
  });
  const { handoff, rebalance } = settings;
  const owner = roles.has("scheduler")
    ? new Owner(p, {
        ownership,
        channels,
        membership,
        leadership: scheduler,
        dispatcher,
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
  if (owner)
    state.publish({
      owned: () => {
        const drain = owner.progress();
        return { owned: owner.jobs, ...(drain && { drain }) };
      },
    });

  return {
    dispatched,
    dispatcher,
    inbox,
    sink: new StatusSink(p, { store, channels, receiptMs: timeoutMs }),
    owner,
    /** Of the leader of the scheduler role, which has an owner. */
    duties: {
      dispatch: (term: Term, signal: AbortSignal) => dispatcher.duty(term, signal),
      ...(owner && { orphans: (term: Term, signal: AbortSignal) => owner.orphans.duty(term, signal) }),
    },
    /** What these incarnations, which have died, had in hand goes to others now. */
    async takeFrom(dead: readonly NodeIdentity[], term: Term): Promise<void> {
      await owner?.orphans.disown(dead, term);
      await Promise.all(dead.map(async (each) => channels.takeOver?.(consumerName(each))));
    },
  };
}
