import type { Channels } from "../channels/channels.ts";
import type { CoordinatorHeartbeat } from "../channels/messages.ts";
import { topics } from "../channels/names.ts";
import type { NodeIdentity, NodeStatus } from "../core/node.ts";
import type { Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";

export interface CoordinatorHeartbeatServiceOptions {
  readonly channels: Pick<Channels, "publish">;
  readonly identity: NodeIdentity;
  readonly clock: Clock;
  readonly random: Random;
  readonly heartbeatMs: number;
  readonly status: () => NodeStatus;
  readonly leaderEpoch: () => number | null;
  readonly jobs: () => number;
  readonly dispatches: () => readonly string[];
}

/** Tells the other nodes what this one owns, every so often and whenever it is told to. */
export class CoordinatorHeartbeatService {
  readonly #o: CoordinatorHeartbeatServiceOptions;
  #over = new AbortController();
  #beating: Promise<void> = Promise.resolve();

  constructor(options: CoordinatorHeartbeatServiceOptions) {
    this.#o = options;
  }

  start(): void {
    this.#over = new AbortController();
    this.#beating = this.#run(this.#over.signal);
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#beating;
  }

  /** One that is not heard is made up for by the next. */
  async beat(): Promise<void> {
    const { channels, identity, clock, status, leaderEpoch, jobs, dispatches } = this.#o;
    const heartbeat: CoordinatorHeartbeat = {
      node: identity.name,
      incarnation: identity.incarnation,
      leaderEpoch: leaderEpoch(),
      status: status(),
      jobs: jobs(),
      dispatches: dispatches(),
      at: new Date(clock.now()).toISOString(),
    };
    try {
      await channels.publish(topics.coordinatorHeartbeat, [{ key: identity.name, body: heartbeat }]);
    } catch {
      // The channels tell when they are away.
    }
  }

  async #run(over: AbortSignal): Promise<void> {
    const { clock, random, heartbeatMs } = this.#o;
    while (!over.aborted) {
      await this.beat();
      // Spread, so that many nodes do not beat all at the same moment.
      await clock.sleep(heartbeatMs * (0.9 + random.chance() / 5), over);
    }
  }
}
