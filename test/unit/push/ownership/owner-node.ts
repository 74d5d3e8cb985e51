/** One owner of a world of them, with a store and channels of its own that can be made to fail. */

import type { Channels, Delivery, Message, Subscription } from "../../../../src/channels/channels.ts";
import type { MemoryChannels } from "../../../../src/channels/memory/channels.ts";
import type { Handoff } from "../../../../src/channels/messages.ts";
import { queues } from "../../../../src/channels/channel-names.ts";
import { BatonError } from "../../../../src/core/errors.ts";
import type { NodeName } from "../../../../src/core/ids.ts";
import type { NodeIdentity, NodeInfo } from "../../../../src/core/node.ts";
import type { Term } from "../../../../src/core/leadership/term.ts";
import type { OwnerSettings } from "../../../../src/push/ownership/owner-context.ts";
import { Owner } from "../../../../src/push/ownership/owner.ts";
import type { Log } from "../../../../src/platform/log.ts";
import { NodeState } from "../../../../src/platform/node-state.ts";
import { fakePlatform } from "../../../support/fake-platform.ts";
import { nodeInfo } from "../../../support/job-builders.ts";
import { seededRandom } from "../../../support/seeded-random.ts";
import type { OwnedBatch, OwnershipStore } from "../../../../src/store/ownership.ts";
import type { OwnershipWorld } from "./world.ts";

export const SETTINGS: OwnerSettings = {
  heartbeatMs: 1_000,
  ackMs: 5_000,
  tries: 3,
  orphanWaitMs: 30_000,
  hardMs: 60_000,
  orphanCheckMs: 30_000,
  rebalance: false,
  rebalanceMs: 10_000,
  rebalanceRatio: 2,
};

interface Taken {
  readonly queue: string;
  readonly consume: () => Subscription;
  readonly die: () => void;
  subscription: Subscription;
}

const COMPETED: readonly string[] = [queues.assigned, queues.handoff];
const NOTHING: Subscription = { close: () => Promise.resolve() };

export class OwnerNode {
  readonly identity: NodeIdentity;
  readonly owner: Owner;
  readonly #state = new NodeState();
  #deaf = false;
  /** Messages and calls that this node does not get through, by name. */
  readonly faults = new Set<"acks" | "store" | "answers">();
  refuses: (events: readonly OwnedBatch[]) => boolean = () => false;
  readonly counts = { own: 0, write: 0, events: 0, offers: 0, largestSend: 0, ackPublishes: 0 };
  readonly #world: OwnershipWorld;
  #dead = false;
  readonly #taken = new Set<Taken>();
  #duty: AbortController | null = null;

  constructor(world: OwnershipWorld, name: NodeName, settings: OwnerSettings, log: Log) {
    this.#world = world;
    this.identity = { name, incarnation: `${name}-${world.nodes.length}` };
    this.#state.forming = null;
    const { clock, nodes } = world;
    const random = seededRandom(nodes.length);
    const platform = fakePlatform({ identity: this.identity, clock, random, log, state: this.#state });
    this.owner = new Owner(platform, {
      ownership: this.#ownership(world.store.ownership),
      channels: this.#channels(world.bus),
      membership: { nodes: () => world.members() },
      leadership: { held: () => null },
      dispatcher: { channels: () => [] },
      settings,
    });
  }

  get draining(): boolean {
    return this.#state.draining;
  }

  set draining(draining: boolean) {
    this.#state.draining = draining;
  }

  get jobs(): number {
    return this.owner.jobs;
  }

  /** Lives, and takes neither assignments nor offers. */
  set deaf(deaf: boolean) {
    if (deaf === this.#deaf) return;
    this.#deaf = deaf;
    for (const taken of this.#taken) {
      if (!COMPETED.includes(taken.queue)) continue;
      if (deaf) void taken.subscription.close();
      else taken.subscription = taken.consume();
    }
  }

  get dead(): boolean {
    return this.#dead;
  }

  drain(hurry = new AbortController()) {
    this.draining = true;
    return this.owner.drain({ hurry: hurry.signal });
  }

  /** As a process dies: nothing of it is heard any more, and what it had in hand comes back. */
  crash(): void {
    if (this.#dead) return;
    this.#dead = true;
    this.#duty?.abort();
    for (const { subscription, die } of this.#taken) {
      void subscription.close();
      die();
    }
    void this.owner.stop().catch(() => {});
  }

  lead(term: Term): void {
    this.#duty?.abort();
    this.#duty = new AbortController();
    // As leader duties do it: a duty that fails ends here, and the test sees what is missing.
    void this.owner.orphans.duty(term, this.#duty.signal).catch(() => {});
  }

  info(): NodeInfo {
    const { name, incarnation } = this.identity;
    const status = this.#dead ? "dead" : this.#state.status;
    return nodeInfo(name, { incarnation, status, alive: !this.#dead });
  }

  #ownership(store: OwnershipStore): OwnershipStore {
    return new Proxy(store, {
      get: (target, name: keyof OwnershipStore) => {
        return async (...args: readonly unknown[]) => {
          this.#living();
          if (this.faults.has("store")) throw new BatonError("STORE_UNAVAILABLE", "the store is away");
          if (name === "own") this.counts.own++;
          if (name === "record") {
            const events = args[0] as readonly OwnedBatch[];
            this.counts.write++;
            this.counts.events += events.length;
            if (this.refuses(events)) throw new TypeError("this can never be written");
          }
          const call = target[name] as (...given: readonly unknown[]) => Promise<unknown>;
          const answer = await call.apply(target, [...args]);
          if (this.faults.has("answers")) throw new BatonError("STORE_UNAVAILABLE", "the answer is lost");
          this.#living();
          return answer;
        };
      },
    });
  }

  #channels(bus: MemoryChannels): Channels {
    return {
      kind: "memory",
      shared: true,
      notifiesOnSubmit: false,
      limits: [],
      start: () => Promise.resolve(),
      stop: () => Promise.resolve(),
      [Symbol.asyncDispose]: () => Promise.resolve(),
      send: async (queue, messages) => {
        this.#living();
        if (queue === queues.handoff)
          this.counts.offers += messages.filter((one) => this.#offered(one)).length;
        this.counts.largestSend = Math.max(this.counts.largestSend, messages.length);
        await bus.send(queue, messages);
      },
      publish: async (topic, messages) => {
        this.#living();
        if (topic.startsWith("job.handoff.ack.")) {
          this.counts.ackPublishes++;
          if (this.faults.has("acks")) return;
        }
        await bus.publish(topic, messages);
      },
      consume: (queue, handler, options) => this.#consume(bus, queue, handler, options),
      subscribe: (topic, handler) =>
        bus.subscribe(topic, (message) => (this.#dead ? undefined : handler(message))),
    };
  }

  #consume(
    bus: MemoryChannels,
    queue: string,
    handler: (batch: readonly Delivery[]) => Promise<void>,
    options?: { readonly batchMax?: number },
  ): Subscription {
    const death = Promise.withResolvers<void>();
    death.promise.catch(() => {});
    const consume = (): Subscription =>
      bus.consume(
        queue,
        async (batch) => {
          try {
            await Promise.race([handler(batch), death.promise]);
          } catch (error) {
            if (batch.some(({ deliveries }) => deliveries > 1)) this.#world.overtaken.add(queue);
            throw error;
          }
        },
        options,
      );
    const taken: Taken = {
      queue,
      consume,
      die: () => death.reject(new Error("the node is dead")),
      subscription: this.#deaf && COMPETED.includes(queue) ? NOTHING : consume(),
    };
    this.#taken.add(taken);
    return {
      close: async () => {
        this.#taken.delete(taken);
        await taken.subscription.close();
      },
    };
  }

  /** Our own offer, and not one of another that is put back. */
  #offered({ body }: Message): boolean {
    const { from } = body as Handoff;
    return from === null || from === this.identity.name;
  }

  #living(): void {
    if (this.#dead) throw new BatonError("STOPPED", "the node is dead");
  }
}
