/**
 * Joins a node to a cluster. It tries for ever, with growing and jittered pauses. A node that was a member before returns
 * to its old peers and founds no new cluster. A node that was removed because it was silent for long joins again.
 */

import { majorityOf } from "../../../core/leadership/bully.ts";
import { foundSet, isMember } from "../../../core/leadership/peer-set.ts";
import { Backoff } from "../../../platform/loop.ts";
import type { Random } from "../../../platform/random.ts";
import { notLeader, removal } from "../../rpc/bully-messages.ts";
import type { PeerAnswer } from "../../rpc/peer-rpc.ts";
import type { ReplyOf } from "../../rpc/peer-routes.ts";
import type { PeerCalls } from "../peer-calls.ts";
import type { PeerSource } from "../peer-list.ts";
import type { PeerState } from "../peer-state.ts";

export type JoinSource = Exclude<PeerSource, { kind: "static" }>;

/** A node that does not lead names the leader; more hops than this are a circle. */
const HOPS_MAX = 3;
/** How long a node waits for its own listener before it checks again. */
const UNREACHABLE_MS = 20;

type Join = "joined" | "waits" | "removed";

export class ClusterJoiner {
  readonly #state: PeerState;
  readonly #calls: PeerCalls;
  readonly #source: JoinSource;
  readonly #random: Random;
  trouble: string | null = null;
  #returning = false;
  #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(state: PeerState, calls: PeerCalls, source: JoinSource, random: Random) {
    this.#state = state;
    this.#calls = calls;
    this.#source = source;
    this.#random = random;
    state.events.on("removed", (why) => {
      if (why === "forgotten") this.#join();
    });
    state.events.on("stranger", ({ address }) => void this.#returnTo(address!));
  }

  start(): void {
    this.#stopping = new AbortController();
    this.#join();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  #join(): void {
    const { signal } = this.#stopping;
    this.#running = this.#running
      .then(() => this.#run(signal))
      .catch((error: unknown) =>
        this.#state.log.error({ err: error }, "joining failed; start this node again"),
      );
  }

  /** Resolves when this node is a member under its present address. */
  async #run(signal: AbortSignal): Promise<void> {
    const { clock, settings, log, identity, peers } = this.#state;
    // Spread: nodes that start together do not ask together.
    const retry = new Backoff(settings.joinRetryMs, settings.joinRetryMsMax, this.#random);
    for (let logged = false; !signal.aborted;) {
      const { address } = this.#state;
      if (address === null) {
        await clock.sleep(UNREACHABLE_MS, signal);
        continue;
      }
      if (peers.set?.members[identity.name] === address && peers.has(identity.name)) break;
      const join = await this.#attempt(address, signal);
      if (join === "joined") break;
      if (join === "removed" || signal.aborted) return;
      if (!logged) log.info({ reason: this.trouble }, "not in the cluster yet; asking again and again");
      logged = true;
      await clock.sleep(retry.next(), signal);
    }
    this.trouble = null;
    if (!signal.aborted) this.#state.joined();
  }

  async #attempt(address: string, signal: AbortSignal): Promise<Join> {
    const { peers, identity } = this.#state;
    const source = this.#source;
    const known = peers.others().flatMap((name) => peers.address(name) ?? []);
    if (source.kind === "join" && source.addresses.length === 0 && !peers.set) return this.#found(address);
    let given: readonly string[] = [];
    try {
      given = source.kind === "join" ? source.addresses : await source.resolve();
    } catch (error) {
      this.trouble = `the list of addresses cannot be had: ${(error as Error).message}`;
    }
    const targets = [...new Set([...known, ...given])].filter((target) => target !== address);
    for (const target of targets) {
      if (signal.aborted) return "waits";
      const join = await this.#ask(target, address);
      if (join !== "waits") return join;
    }
    // It may have become a member meanwhile.
    const { name } = identity;
    if (peers.has(name) && peers.set?.members[name] === address) return "joined";
    if (peers.has(name) && peers.others().length === 0) return this.#move(address);
    if (source.kind === "discover" && !peers.set) return this.#foundTogether(address, targets, source.expect);
    this.trouble ??= "there is no address to join through";
    return "waits";
  }

  async #ask(first: string, address: string): Promise<Join> {
    const { identity, settings } = this.#state;
    let target = first;
    for (let hop = 0; hop < HOPS_MAX; hop++) {
      const deadlineMs = 4 * settings.heartbeatTimeoutMs;
      const asked = await this.#calls.askAt(target, "join", { from: identity, address }, deadlineMs);
      if (asked.got === "answer") return this.#enter(asked.value);
      this.trouble = describe(target, asked);
      const details = asked.got === "unknown" ? asked.error?.details : undefined;
      if (removal.safeParse(details).success) return "removed";
      const leader = notLeader.safeParse(details).data?.leader_url;
      if (leader === undefined || leader === target || leader === address) return "waits";
      target = leader;
    }
    return "waits";
  }

  async #enter(answer: ReplyOf<"join">): Promise<Join> {
    const { voter, identity, peers, log } = this.#state;
    try {
      await this.#state.adopt(answer.peers);
      if (answer.leader) voter.hear(answer.leader);
      // A node that was never a member has promised nothing.
      if (answer.fresh && !voter.votes) await voter.enter();
      return peers.has(identity.name) ? "joined" : "waits";
    } catch (error) {
      this.trouble = `the members of the cluster cannot be stored: ${(error as Error).message}`;
      log.warn({ err: error }, "the members of the cluster cannot be stored");
      return "waits";
    }
  }

  async #found(address: string): Promise<Join> {
    const { identity, voter, log } = this.#state;
    await voter.note(foundSet(this.#random.uuid(), identity.name, address));
    await voter.enter();
    log.info({ address }, "founded a new cluster");
    return "joined";
  }

  /** Alone in a cluster that it has founded, under a new address. */
  async #move(address: string): Promise<Join> {
    const { peers, identity, voter } = this.#state;
    const set = peers.set!;
    await voter.note({ ...set, count: set.count + 1, members: { [identity.name]: address } });
    return "joined";
  }

  /** Of the nodes that seek each other, the one with the highest name founds the cluster. It takes a majority, or two halves would each found one. */
  async #foundTogether(address: string, targets: readonly string[], expect = 1): Promise<Join> {
    const { identity } = this.#state;
    const met = (await Promise.all(targets.map((target) => this.#meet(target)))).filter(
      (peer) => peer !== null,
    );
    const others = new Map(met.map((peer) => [peer.node.name, peer]));
    others.delete(identity.name);
    // The list may show this node too, under another address than it knows itself by.
    const self = met.some((peer) => peer.node.incarnation === identity.incarnation);
    const needed = majorityOf(Math.max(targets.length + (self ? 0 : 1), expect));
    if (others.size + 1 < needed) {
      this.trouble = `${others.size + 1} of ${needed} nodes that it takes to found a cluster have met`;
      return "waits";
    }
    const member = [...others.values()].some((peer) => peer.cluster !== null);
    if (!member && [...others.keys()].every((name) => name < identity.name)) return this.#found(address);
    this.trouble = "another node founds the cluster, or has founded it";
    return "waits";
  }

  /** A founder that lost its disk has founded a new cluster; the cluster that it belongs to still calls it. */
  async #returnTo(address: string): Promise<void> {
    const { peers, identity, voter, log, settings } = this.#state;
    const own = this.#state.address;
    const cluster = peers.set?.cluster;
    if (this.#returning || own === null || peers.others().length > 0) return;
    this.#returning = true;
    try {
      const request = { from: identity, address: own };
      const asked = await this.#calls.askAt(address, "join", request, settings.heartbeatTimeoutMs);
      if (asked.got !== "answer") return;
      const set = asked.value.peers;
      if (set.cluster === cluster || !isMember(set, identity.name)) return;
      log.warn({ address }, "this node belongs to another cluster than the one that it founded; going back");
      await voter.forget();
      await this.#state.adopt(set);
      this.#state.joined();
    } catch (error) {
      log.warn({ err: error }, "could not go back to the cluster that calls this node");
    } finally {
      this.#returning = false;
    }
  }

  async #meet(target: string): Promise<ReplyOf<"heartbeat"> | null> {
    const { identity, settings } = this.#state;
    const request = { from: identity, set: null, ...this.#state.presence() };
    const met = await this.#calls.askAt(target, "heartbeat", request, settings.heartbeatTimeoutMs);
    return met.got === "answer" ? met.value : null;
  }
}

function describe(target: string, asked: Exclude<PeerAnswer<unknown>, { got: "answer" }>): string {
  const error = asked.got === "unknown" ? asked.error : undefined;
  const denied = asked.got === "refused" ? asked.denied : undefined;
  if (error === undefined && denied === undefined) return `${target} cannot be reached: ${asked.reason}`;
  return `${target} does not let this node join: ${denied ?? error?.message}`;
}
