import type { CoordinatorHeartbeat } from "../../channels/messages.ts";
import { topics } from "../../channels/channel-names.ts";
import { Loop } from "../../platform/loop.ts";
import type { OwnerContext } from "./owner-context.ts";

/** Publishes how many jobs this node owns, at intervals and on demand. */
export class CoordinatorHeartbeatService {
  readonly #o: OwnerContext;
  readonly #loop: Loop;

  constructor(context: OwnerContext) {
    this.#o = context;
    const { clock, random, settings } = context;
    this.#loop = new Loop(clock, async () => {
      await this.beat();
      // Jitter, so that many nodes do not publish at the same moment.
      return settings.heartbeatMs * (0.9 + random.chance() / 5);
    });
  }

  start(): void {
    this.#loop.start();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async beat(): Promise<void> {
    const { channels, identity, clock, state, leadership, dispatcher, owned } = this.#o;
    const heartbeat: CoordinatorHeartbeat = {
      node: identity.name,
      incarnation: identity.incarnation,
      leaderEpoch: leadership.held()?.epoch ?? null,
      status: state.status,
      jobs: owned.jobs,
      dispatches: dispatcher.channels(),
      at: new Date(clock.now()).toISOString(),
    };
    const published = channels.publish(topics.coordinatorHeartbeat, [
      { key: identity.name, body: heartbeat },
    ]);
    await published.catch(() => {}); // the channels log when they are unavailable
  }
}
