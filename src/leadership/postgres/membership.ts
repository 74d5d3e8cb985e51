/**
 * Membership of nodes that share a database: one statement per heartbeat writes our row and reads the others, so that
 * `nodes()` never waits. The rows themselves are node-registry.ts.
 */

import { BatonError, hasCode } from "../../core/errors.ts";
import { judge, NOTHING_SEEN, type Watch } from "../../core/leadership/failure-detector.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity, NodeInfo, NodeStatus, OwnInfo } from "../../core/node.ts";
import type { Term } from "../../core/leadership/term.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { Membership, NodeRequest } from "../coordination.ts";
import { PendingRequest } from "../pending-request.ts";
import type { Namesake, NodeList, NodeRegistry, Registered } from "./node-registry.ts";

export interface MembershipSettings {
  readonly heartbeatMs: number;
  /** A node that was silent for so long is dead. */
  readonly deadAfterMs: number;
  /** How long a dead node stays in the list. */
  readonly forgetAfterMs: number;
}

export interface PostgresMembershipOptions {
  readonly registry: NodeRegistry;
  readonly identity: NodeIdentity;
  readonly info: () => OwnInfo;
  readonly clock: Clock;
  readonly log: Log;
  readonly settings: MembershipSettings;
}

/** How often a name that is taken is asked for again. */
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
  #stopping = new AbortController();
  #nap = new AbortController();
  #hurry = false;
  #loop: Promise<void> = Promise.resolve();
  #beating: Promise<void> = Promise.resolve();

  constructor(options: PostgresMembershipOptions) {
    super();
    this.#o = options;
    this.registry = options.registry;
  }

  nodes(): readonly NodeInfo[] {
    const { identity, info, clock, settings } = this.#o;
    const elapsedMs = clock.monotonic() - this.#seenMono;
    const own = {
      ...info(),
      ...identity,
      status: this.registry.status,
      lastSeenAt: this.#seenAt,
      alive: true,
    };
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
    const marked = await this.registry.markDead(dead, fence);
    const newly = nodes
      .filter(({ incarnation }) => marked.has(incarnation))
      .map(({ name, incarnation }) => ({ name, incarnation }));
    return [...unrecovered, ...newly];
  }

  async markRecovered(nodes: readonly NodeIdentity[], fence: Term): Promise<void> {
    await this.registry.markRecovered(nodes, fence);
  }

  /** Sends the next heartbeat now: a request is waiting, or the connection is new. */
  hurry(): void {
    this.#hurry = true;
    this.#nap.abort();
  }

  protected async onStart(): Promise<void> {
    await this.#takeName();
    this.#stopping = new AbortController();
    this.#watched = { term: 0, watch: NOTHING_SEEN };
    await this.#beat((heard) => this.registry.beat(heard));
    this.#loop = this.#run(this.#stopping.signal);
  }

  protected async onStop(): Promise<void> {
    this.#stopping.abort();
    this.#nap.abort();
    await this.#loop;
    await this.#beating;
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
    for (let told = false; ; told = true) {
      const namesake = await this.registry.register();
      if (!namesake) return;
      if (clock.monotonic() >= giveUpAt) throw nameInUse(identity, namesake);
      if (!told) log.warn({ ...namesake }, `another node is called ${identity.name}; waiting for its end`);
      await clock.sleep(Math.min(NAME_RETRY_MS, settings.deadAfterMs));
    }
  }

  async #run(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      if (!this.#hurry) {
        this.#nap = new AbortController();
        await this.#o.clock.sleep(this.#o.settings.heartbeatMs, this.#nap.signal);
      }
      this.#hurry = false;
      if (!stopping.aborted) await this.#beat((heard) => this.registry.beat(heard));
    }
  }

  /** One behind the other, so that the answer of the last one is what we remember. */
  #beat(send: (heard: string | null) => Promise<NodeList>): Promise<void> {
    const beat = this.#beating.then(async () => {
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
    this.#beating = beat;
    return beat;
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
