/** Membership of nodes that share a database: each heartbeat writes our row and reads the others in one statement. */

import { BatonError, hasCode } from "../../core/errors.ts";
import { judge, NOTHING_SEEN, type Watch } from "../../core/leadership/failure-detector.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity, NodeInfo, NodeStatus, OwnInfo } from "../../core/node.ts";
import type { Term } from "../../core/leadership/term.ts";
import { Loop, Mutex } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import { Lifecycle } from "../../platform/service.ts";
import { PendingRequest, type Membership, type NodeRequest } from "../coordination.ts";
import type { Namesake, NodeList, NodeRegistry, Registered } from "./node-registry.ts";

export interface MembershipSettings {
  readonly heartbeatMs: number;
  readonly deadAfterMs: number;
  readonly forgetAfterMs: number;
}

interface PostgresMembershipOptions extends Pick<Platform, "identity" | "clock" | "log"> {
  readonly registry: NodeRegistry;
  readonly info: () => OwnInfo;
  readonly settings: MembershipSettings;
}

const NAME_RETRY_MS = 100;
const REQUESTS: ReadonlySet<string> = new Set<NodeRequest>(["drain", "resume"]);

export class PostgresMembership extends Lifecycle implements Membership {
  readonly registry: NodeRegistry;
  readonly #o: PostgresMembershipOptions;
  readonly #pending = new PendingRequest();
  /** The request that was received here and is not cleared in our entry yet. */
  #heard: string | null = null;
  #others: readonly Registered[] = [];
  /** When the last heartbeat was answered: by the clock of the list, and by ours. */
  #seenAt = 0;
  #seenMono = 0;
  #failing = false;
  #displaced: string | null = null;
  #watched: { readonly term: number; readonly watch: Watch | null } = { term: 0, watch: NOTHING_SEEN };
  readonly #loop: Loop;
  readonly #beats = new Mutex();

  constructor(options: PostgresMembershipOptions) {
    super();
    this.#o = options;
    this.registry = options.registry;
    this.#loop = new Loop(options.clock, async () => {
      await this.#beat((heard) => this.registry.beat(heard));
      return options.settings.heartbeatMs;
    });
  }

  nodes(): readonly NodeInfo[] {
    const { identity, info, clock, settings } = this.#o;
    const { status } = this.registry;
    const elapsedMs = clock.monotonic() - this.#seenMono;
    const own = { ...info(), ...identity, status, lastSeenAt: this.#seenAt, alive: true };
    const others = this.#others.map(({ node, ageMs }) => ({
      ...node,
      alive: node.status !== "dead" && ageMs + elapsedMs < settings.deadAfterMs,
    }));
    return [own, ...others].sort(byNameAndIncarnation);
  }

  displaced(): string | null {
    return this.#displaced;
  }

  /** A list that is out of reach hears of it with the next heartbeat that reaches it. */
  async setStatus(status: NodeStatus): Promise<void> {
    await this.#beat((heard) => this.registry.setStatus(status, heard));
  }

  ask(node: NodeName, request: NodeRequest): Promise<boolean> {
    return this.registry.ask(node, request);
  }

  requests(signal: AbortSignal): AsyncIterable<NodeRequest> {
    return this.#pending.follow(signal);
  }

  async findDead(fence: Term): Promise<readonly NodeIdentity[]> {
    const { clock, identity, settings } = this.#o;
    const { server, serverUpMs, signs, unrecovered } = await this.registry.snapshot(
      fence,
      settings.forgetAfterMs,
    );
    const nodes = signs.filter((sign) => sign.incarnation !== identity.incarnation);
    // What an earlier term saw says nothing about this one.
    const before = this.#watched.term === fence.epoch ? this.#watched.watch : NOTHING_SEEN;
    const { watch, dead } = judge(before, { at: clock.monotonic(), server, serverUpMs, nodes }, settings);
    this.#watched = { term: fence.epoch, watch };
    if (dead.length === 0) return unrecovered;
    return [...unrecovered, ...(await this.registry.markDead(dead, fence))];
  }

  async markRecovered(nodes: readonly NodeIdentity[], fence: Term): Promise<void> {
    await this.registry.markRecovered(nodes, fence);
  }

  hurry(): void {
    this.#loop.wake();
  }

  protected async onStart(): Promise<void> {
    await this.#takeName();
    this.#watched = { term: 0, watch: NOTHING_SEEN };
    await this.#beat((heard) => this.registry.beat(heard));
    this.#loop.start(this.#o.settings.heartbeatMs);
  }

  protected async onStop(): Promise<void> {
    await this.#loop.stop();
    await this.#beats.idle();
    try {
      await this.registry.deregister();
    } catch (error) {
      this.#o.log.warn({ err: error }, "could not leave the list of nodes; others see our end all the same");
    }
  }

  /** A namesake that has just died is found out within `deadAfterMs`, twice that if the leader died with it. */
  async #takeName(): Promise<void> {
    const { clock, identity, log, settings } = this.#o;
    const giveUpAt = clock.monotonic() + 2 * settings.deadAfterMs;
    for (let warned = false; ; warned = true) {
      const namesake = await this.registry.register();
      if (!namesake) return;
      if (clock.monotonic() >= giveUpAt) throw nameInUse(identity, namesake);
      if (!warned) log.warn({ ...namesake }, `another node is called ${identity.name}; waiting for its end`);
      await clock.sleep(Math.min(NAME_RETRY_MS, settings.deadAfterMs));
    }
  }

  /** One behind the other, so that the answer of the last one is what we remember. */
  #beat(send: (heard: string | null) => Promise<NodeList>): Promise<void> {
    return this.#beats.run(async () => {
      try {
        const list = await send(this.#heard);
        this.#seenMono = this.#o.clock.monotonic();
        this.#seenAt = list.at;
        this.#others = list.others;
        this.#failing = false;
        this.#displaced = null;
        this.#heard = null;
        if (list.request !== null) this.#hear(list.request);
      } catch (error) {
        const displaced = hasCode(error, "NAME_IN_USE") ? error.message : null;
        if (!this.#failing)
          this.#o.log.warn({ err: error }, displaced ?? "no heartbeat reaches the database; trying again");
        this.#failing = true;
        this.#displaced = displaced ?? this.#displaced;
      }
    });
  }

  #hear(request: string): void {
    this.#heard = request;
    if (REQUESTS.has(request)) this.#pending.put(request as NodeRequest);
    else this.#o.log.warn({ request }, "was asked for something that this version does not know");
    this.hurry(); // to clear it
  }
}

/** Of several incarnations with one name, the live one comes first: a lookup by name means that one. */
function byNameAndIncarnation(a: NodeInfo, b: NodeInfo): number {
  if (a.name !== b.name) return a.name < b.name ? -1 : 1;
  return Number(a.status === "dead") - Number(b.status === "dead") || b.startedAt - a.startedAt;
}

function nameInUse({ name }: NodeIdentity, { hostname, version, startedAt }: Namesake): BatonError {
  const since = startedAt > 0 ? `, running since ${new Date(startedAt).toISOString()}` : "";
  return new BatonError(
    "NAME_IN_USE",
    `another living node is called ${name}: on host ${hostname}, version ${version}${since}; give this one another name with --name, or stop the other`,
    { field: "name", name, hostname, version, startedAt },
  );
}
