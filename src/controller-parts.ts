/** The controller of a node, with what it is made of. */

import type { Channels } from "./channels/channels.ts";
import type { Settings } from "./config/settings.ts";
import { Controller, type AgentSink } from "./controller/controller.ts";
import type { EventFeed } from "./controller/event-feed.ts";
import { TermGuard } from "./controller/term-guard.ts";
import type { Leadership, Membership } from "./coordination/coordination.ts";
import type { JobId } from "./core/ids.ts";
import type { NodeIdentity } from "./core/node.ts";
import type { JobSpans } from "./jobs/job-spans.ts";
import type { LeaseReaper } from "./jobs/lease-reaper.ts";
import type { OutcomeRules } from "./jobs/outcome.ts";
import type { Submitter } from "./jobs/submitter.ts";
import type { TaskRegistry } from "./jobs/task-registry.ts";
import type { Clock } from "./platform/clock.ts";
import type { Log } from "./platform/log.ts";
import type { NodeEvents } from "./platform/node-events.ts";
import type { Random } from "./platform/random.ts";
import type { Store } from "./store/store.ts";

export interface ControllerPartsOptions {
  readonly settings: Settings;
  readonly identity: NodeIdentity;
  readonly store: Store;
  readonly channels: Channels;
  readonly membership: Membership;
  readonly submitter: Submitter;
  readonly tasks: TaskRegistry;
  readonly rules: OutcomeRules;
  readonly events: EventFeed;
  readonly nodeEvents: NodeEvents;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly spans?: JobSpans;
  readonly sink?: AgentSink;
  readonly draining: () => boolean;
  readonly forming: () => string | null;
  readonly onChange: (id: JobId) => void;
  readonly onReady: () => void;
  /** Built later, as the next: they tell what is made here. */
  readonly reaper: () => LeaseReaper;
  /** Its duties are made of what is made here. */
  readonly leadership: () => Leadership;
}

export function openController(options: ControllerPartsOptions): Controller {
  const { settings, identity, membership, draining, forming, clock, leadership, ...rest } = options;
  const guard = new TermGuard({
    identity,
    leadership: { current: () => leadership().current(), held: () => leadership().held() },
    membership,
    draining,
    forming,
  });
  const { shared: sharedStore } = rest.store.guarantees;
  return new Controller({ ...rest, clock, guard, sharedStore, settings: settings.agents });
}
