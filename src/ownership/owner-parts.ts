/** What an owner is made of, wired in one place. */

import { AssignmentSubscriber } from "./assignment-subscriber.ts";
import { AssignmentCleaner } from "./assignment-cleaner.ts";
import { CoordinatorDrainService } from "./coordinator-drain-service.ts";
import { JobEventWriter } from "./job-event-writer.ts";
import { JobHandoffAckListener } from "./job-handoff-ack-listener.ts";
import { JobHandoffPublisher } from "./job-handoff-publisher.ts";
import { JobHandoffSubscriber } from "./job-handoff-subscriber.ts";
import { CoordinatorHealthMonitor } from "./coordinator-health-monitor.ts";
import { CoordinatorHeartbeatService } from "./coordinator-heartbeat-service.ts";
import { JobEventConsumer } from "./job-event-consumer.ts";
import { OrphanJobDetector } from "./orphan-job-detector.ts";
import { OwnedAssignments } from "./owned-assignments.ts";
import type { OwnerOptions } from "./owner.ts";
import { OwnershipClaims } from "./ownership-claims.ts";
import { Rebalancer } from "./rebalancer.ts";
import { StoreRetry } from "./store-retry.ts";

export type OwnerParts = ReturnType<typeof buildOwnerParts>;

export function buildOwnerParts(options: OwnerOptions, { taking }: { readonly taking: () => boolean }) {
  const { settings } = options;
  const calls = new StoreRetry(options);
  // They know each other: what is taken is heard and looked after, and what ends is told to whoever hands it over.
  const all = (): OwnedAssignments => owned;
  const shared = { ...options, calls, owned: all };

  const writer = new JobEventWriter(shared);
  const upkeep = new AssignmentCleaner({ ...shared, recall: () => claims.recall() });
  const events = new JobEventConsumer({ ...shared, writer, onWritten: (one) => upkeep.heard(one) });
  const publisher = new JobHandoffPublisher({ ...shared, ackMs: settings.ackMs, tries: settings.tries });
  const owned = new OwnedAssignments({
    consume: (assignment) => events.consume(assignment),
    onTaken: (one) => upkeep.taken(one),
    onEnded: (one, how) => publisher.ended(one, how),
  });
  const health = new CoordinatorHealthMonitor({ ...options, heartbeatMs: settings.heartbeatMs });
  const heartbeats = new CoordinatorHeartbeatService({
    ...options,
    heartbeatMs: settings.heartbeatMs,
    jobs: () => owned.jobs,
  });
  const claims = new OwnershipClaims(shared);
  const assigned = new AssignmentSubscriber({ ...options, claims });
  const offers = new JobHandoffSubscriber({
    ...shared,
    claims,
    health,
    giving: (assignment) => publisher.giving(assignment),
    beat: () => heartbeats.beat(),
  });
  const acks = new JobHandoffAckListener({ ...options, onAck: (ack) => publisher.acknowledged(ack) });
  const drains = new CoordinatorDrainService({
    ...shared,
    publisher,
    health,
    orphanWaitMs: settings.orphanWaitMs,
    hardMs: settings.hardMs,
  });
  const rebalancer = new Rebalancer({
    ...shared,
    health,
    publisher,
    offers,
    beat: () => heartbeats.beat(),
    enabled: settings.rebalance,
    intervalMs: settings.rebalanceMs,
    ratio: settings.rebalanceRatio,
  });
  const orphans = new OrphanJobDetector({
    ...options,
    checkMs: settings.orphanCheckMs,
    takers: () => taking() || health.peers().length > 0,
  });
  return {
    owned,
    writer,
    upkeep,
    health,
    heartbeats,
    claims,
    assigned,
    offers,
    acks,
    drains,
    rebalancer,
    orphans,
  };
}
