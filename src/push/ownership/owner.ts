/**
 * The owner's side of push dispatch: which jobs' events this node writes, and how another node takes over. Its services share
 * OwnedAssignments and subscribe to its changes.
 *
 *   job.assigned ───────────────────────────┐
 *   job.handoff ───> JobHandoffSubscriber ──┴> OwnershipClaims ──> OwnedAssignments ──> AssignmentCleaner
 *   job.N.status ──> JobEventConsumer ──> JobEventWriter ──> store         |
 *                        '──> receipts                                      '──> JobHandoffPublisher ──> job.handoff
 *                                                     drain and rebalancing ──────────^
 */

import type { DrainProgress } from "../../core/node.ts";
import { within } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import { Lifecycle } from "../../platform/service.ts";
import { AssignmentCleaner } from "./assignment-cleaner.ts";
import {
  CoordinatorDrainService,
  type DrainOptions,
  type DrainOutcome,
} from "./coordinator-drain-service.ts";
import { CoordinatorHealthMonitor } from "./coordinator-health-monitor.ts";
import { CoordinatorHeartbeatService } from "./coordinator-heartbeat-service.ts";
import { JobEventConsumer } from "./job-event-consumer.ts";
import { JobEventWriter } from "./job-event-writer.ts";
import { JobHandoffAckListener, JobHandoffPublisher } from "./job-handoff-publisher.ts";
import { JobHandoffSubscriber } from "./job-handoff-subscriber.ts";
import { OrphanJobDetector } from "./orphan-job-detector.ts";
import { OwnedAssignments } from "./owned-assignments.ts";
import { OwnershipClaims } from "./ownership-claims.ts";
import { Rebalancer } from "./rebalancer.ts";
import { StoreRetry, type OwnerContext, type OwnerOptions } from "./owner-context.ts";

/** What a stop waits for at most: messages that an unavailable store holds up go to the next owner anyway. */
const LAST_WRITES_MS = 2_000;

/** How long a drain may take to learn how many jobs it has. */
const COUNT_MS = 1_000;

interface Draining {
  readonly done: Promise<DrainOutcome>;
  readonly hurry: AbortController;
  readonly cancel: AbortController;
}

export class Owner extends Lifecycle {
  readonly #platform: Platform;
  readonly #owned = new OwnedAssignments();
  readonly #writer: JobEventWriter;
  readonly #claims: OwnershipClaims;
  readonly #cleaner: AssignmentCleaner;
  readonly #heartbeats: CoordinatorHeartbeatService;
  readonly #offers: JobHandoffSubscriber;
  readonly #drains: CoordinatorDrainService;
  readonly #rebalancer: Rebalancer;
  readonly orphans: OrphanJobDetector;
  /** Those that run from the start to the stop, also during a drain. */
  readonly #services: readonly { start(): void; stop(): Promise<void> }[];
  #draining: Draining | null = null;

  constructor(platform: Platform, options: OwnerOptions) {
    super();
    this.#platform = platform;
    const owned = this.#owned;
    const context: OwnerContext = { ...platform, ...options, owned, retry: new StoreRetry(platform) };
    this.#writer = new JobEventWriter(context);
    owned.subscribe(new JobEventConsumer(context, this.#writer));
    const claims = (this.#claims = new OwnershipClaims(context));
    this.#cleaner = new AssignmentCleaner(context, claims);
    owned.subscribe(this.#cleaner);
    const health = new CoordinatorHealthMonitor(context);
    const heartbeats = (this.#heartbeats = new CoordinatorHeartbeatService(context));
    const publisher = new JobHandoffPublisher(context);
    owned.subscribe(publisher);
    const acks = new JobHandoffAckListener(context, publisher);
    this.#services = [health, acks, this.#cleaner, heartbeats];
    const handoff = { ...context, health, heartbeats, publisher };
    this.#offers = new JobHandoffSubscriber(handoff, claims);
    this.#drains = new CoordinatorDrainService(handoff);
    this.#rebalancer = new Rebalancer(handoff, this.#offers);
    this.orphans = new OrphanJobDetector(handoff, this.#offers);
  }

  get jobs(): number {
    return this.#owned.jobs;
  }

  get assignments(): number {
    return this.#owned.size;
  }

  /** Of a drain that is under way or has ended; null after a resume. */
  progress(): DrainProgress | null {
    return this.#drains.progress();
  }

  /** Takes no more, and hands over what it owns. A second call joins the first, and may hurry it. */
  drain(options: DrainOptions): Promise<DrainOutcome> {
    if (!this.#draining) {
      const [hurry, cancel] = [new AbortController(), new AbortController()];
      const done = this.#drain({ ...options, hurry: hurry.signal }, cancel.signal);
      this.#draining = { hurry, cancel, done };
    }
    const { done, hurry, cancel } = this.#draining;
    passOn(options.hurry, hurry);
    if (options.callOff) passOn(options.callOff, cancel);
    return done;
  }

  /** Takes assignments and offers again. A drain that is under way ends, and what it has not handed over stays. */
  async resume(): Promise<void> {
    this.#draining?.cancel.abort();
    await this.#draining?.done.catch(() => {});
    this.#draining = null;
    this.#drains.resume();
    if (this.running) this.#open();
    await this.#heartbeats.beat();
  }

  protected override onStart(): void {
    this.#draining = null;
    this.#drains.resume();
    this.#writer.start();
    this.#claims.start();
    for (const service of this.#services) service.start();
    this.#open();
  }

  protected override async onStop(): Promise<void> {
    const { clock } = this.#platform;
    this.#draining?.hurry.abort();
    this.#claims.stop();
    await this.#draining?.done.catch(() => {});
    await this.#close();
    if (this.#owned.size > 0) await this.#drains.releaseAll();
    this.#writer.stop();
    for (const one of this.#owned.all()) this.#owned.end(one, "given");
    await within(clock, LAST_WRITES_MS, this.#owned.allClosed());
    await Promise.all(this.#services.map((service) => service.stop()));
  }

  async #drain(options: DrainOptions, cancel: AbortSignal): Promise<DrainOutcome> {
    const { log } = this.#platform;
    await this.#close();
    await this.#heartbeats.beat();
    // A guess is good enough for a drain that cannot ask.
    if (this.#owned.size > 0)
      await this.#cleaner
        .count(options.hurry, COUNT_MS)
        .catch((error: unknown) => log.debug({ err: error }, "owned jobs could not be counted"));
    return this.#drains.drain(options, cancel);
  }

  #open(): void {
    this.#claims.open();
    this.#offers.open();
    this.#rebalancer.start();
  }

  async #close(): Promise<void> {
    await Promise.all([this.#claims.close(), this.#offers.close(), this.#rebalancer.stop()]);
  }
}

function passOn(from: AbortSignal, to: AbortController): void {
  if (from.aborted) to.abort();
  else from.addEventListener("abort", () => to.abort(), { once: true });
}
