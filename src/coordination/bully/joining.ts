/**
 * How a node gets into a cluster that nodes join: it asks for ever, with pauses that grow and differ from node to node, so that
 * a target that comes late is found and one that comes back is not stormed. A node that was a member before goes back to its
 * old peers and founds nothing.
 */

import { majorityOf } from "../../core/bully.ts";
import type { NodeIdentity } from "../../core/node.ts";
import { foundSet, type PeerSet } from "../../core/peer-set.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import type { Random } from "../../platform/random.ts";
import type { Outcome } from "../../transport/transport.ts";
import {
  addressField,
  heartbeatAnswer,
  joinAnswer,
  notLeader,
  PATHS,
  readMessage,
  type HeartbeatAnswer,
  type Presence,
} from "./messages.ts";
import type { PeerCalls } from "./peer-calls.ts";
import type { PeerSource, Roster } from "./roster.ts";
import type { BullySettings } from "./settings.ts";
import type { Voter } from "./voter.ts";

export interface JoiningOptions {
  readonly identity: NodeIdentity;
  readonly source: Exclude<PeerSource, { kind: "static" }>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly settings: BullySettings;
  readonly roster: Roster;
  readonly voter: Voter;
  readonly calls: PeerCalls;
  /** Where others reach this node; null while it does not listen. */
  readonly address: () => string | null;
  readonly presence: () => Presence;
  readonly adopt: (set: PeerSet) => Promise<void>;
  readonly onJoined: () => void;
}

/** A node that does not lead names the one that does; more hops than this, and they send us round in circles. */
const HOPS_MAX = 3;
/** How long a node waits for its own listener before it looks again. */
const UNREACHABLE_MS = 20;

type Join = "joined" | "waits" | "removed";

export class Joining {
  readonly #o: JoiningOptions;
  #trouble: string | null = null;

  constructor(options: JoiningOptions) {
    this.#o = options;
  }

  /** Why this node belongs to no cluster yet. */
  get trouble(): string | null {
    return this.#trouble;
  }

  /** Resolves when this node is a member under the address that it has now. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, settings, log, identity, roster } = this.#o;
    let pauseMs = settings.joinRetryMs;
    for (let told = false; !signal.aborted;) {
      const address = this.#o.address();
      if (address === null) {
        await clock.sleep(UNREACHABLE_MS, signal);
        continue;
      }
      if (roster.set?.members[identity.name] === address && roster.has(identity.name)) break;
      const join = await this.#attempt(address, signal);
      if (join === "joined") break;
      if (join === "removed" || signal.aborted) return;
      if (!told) log.info({ reason: this.#trouble }, "not in the cluster yet; asking again and again");
      told = true;
      // From half to one and a half: nodes that start together do not ask together.
      await clock.sleep(pauseMs * (0.5 + random.chance()), signal);
      pauseMs = Math.min(pauseMs * 2, settings.joinRetryMsMax);
    }
    this.#trouble = null;
    if (!signal.aborted) this.#o.onJoined();
  }

  async #attempt(address: string, signal: AbortSignal): Promise<Join> {
    const { source, roster } = this.#o;
    const known = roster.others().flatMap((name) => roster.address(name) ?? []);
    if (source.kind === "join" && source.addresses.length === 0 && !roster.set) return this.#found(address);
    let given: readonly string[] = [];
    try {
      given = source.kind === "join" ? source.addresses : await source.resolve();
    } catch (error) {
      this.#trouble = `the list of addresses cannot be had: ${(error as Error).message}`;
    }
    const targets = [...new Set([...known, ...given])].filter((target) => target !== address);
    for (const target of targets) {
      if (signal.aborted) return "waits";
      const join = await this.#ask(target, address);
      if (join !== "waits") return join;
    }
    // It may have been let in while it asked.
    const { name } = this.#o.identity;
    if (roster.has(name) && roster.set?.members[name] === address) return "joined";
    if (roster.has(name) && roster.others().length === 0) return this.#move(address);
    if (source.kind === "discover" && !roster.set)
      return this.#foundTogether(address, targets, source.expect);
    this.#trouble ??= "there is no address to join through";
    return "waits";
  }

  async #ask(first: string, address: string): Promise<Join> {
    const { calls, identity, settings } = this.#o;
    let target = first;
    for (let hop = 0; hop < HOPS_MAX; hop++) {
      const body = { op: "join", from: identity, address };
      const deadlineMs = 4 * settings.heartbeatTimeoutMs;
      const outcome = await calls.call(target, PATHS.join, body, { deadlineMs });
      if (outcome.outcome === "reply" && outcome.status === 200) return this.#enter(target, outcome.body);
      const leader = leaderIn(outcome);
      this.#trouble = describe(target, outcome);
      if (outcome.outcome === "reply" && outcome.status === 410) return "removed";
      if (leader === null || leader === target || leader === address) return "waits";
      target = leader;
    }
    return "waits";
  }

  async #enter(target: string, text: string): Promise<Join> {
    const { voter, adopt, log, identity } = this.#o;
    try {
      const { fresh, leader, peers } = readMessage(joinAnswer, text);
      await adopt(peers);
      if (leader) voter.hear(leader);
      // Whoever was no member has promised nothing.
      if (fresh && !voter.votes) await voter.enter();
      return this.#o.roster.has(identity.name) ? "joined" : "waits";
    } catch (error) {
      this.#trouble = `${target} answers something that makes no sense: ${(error as Error).message}`;
      log.warn({ err: error, target }, "the answer to a join makes no sense");
      return "waits";
    }
  }

  async #found(address: string): Promise<Join> {
    const { random, identity, voter, log } = this.#o;
    await voter.note(foundSet(random.uuid(), identity.name, address));
    await voter.enter();
    log.info({ address }, "founded a new cluster");
    return "joined";
  }

  /** Alone in a cluster that it has founded, under a new address. */
  async #move(address: string): Promise<Join> {
    const { roster, identity, voter } = this.#o;
    const set = roster.set!;
    await voter.note({ ...set, count: set.count + 1, members: { [identity.name]: address } });
    return "joined";
  }

  /** Of those that are looking for each other, the highest name founds; a majority has to be there, or two halves would. */
  async #foundTogether(address: string, targets: readonly string[], expect = 1): Promise<Join> {
    const { identity } = this.#o;
    const met = (await Promise.all(targets.map((target) => this.#meet(target)))).filter(
      (peer) => peer !== null,
    );
    const others = new Map(met.map((peer) => [peer.node.name, peer]));
    others.delete(identity.name);
    // The list may show this node too, under another address than it knows itself by.
    const self = met.some((peer) => peer.node.incarnation === identity.incarnation);
    const needed = majorityOf(Math.max(targets.length + (self ? 0 : 1), expect));
    if (others.size + 1 < needed) {
      this.#trouble = `${others.size + 1} of ${needed} nodes that it takes to found a cluster have met`;
      return "waits";
    }
    const member = [...others.values()].some((peer) => peer.cluster !== null);
    if (!member && [...others.keys()].every((name) => name < identity.name)) return this.#found(address);
    this.#trouble = "another node founds the cluster, or has founded it";
    return "waits";
  }

  async #meet(target: string): Promise<HeartbeatAnswer | null> {
    const { calls, presence, settings } = this.#o;
    const own = presence();
    const body = { from: own.node, set: null, ...own };
    const options = { deadlineMs: settings.heartbeatTimeoutMs };
    const outcome = await calls.call(target, PATHS.heartbeat, body, options);
    if (outcome.outcome !== "reply" || outcome.status !== 200) return null;
    try {
      return readMessage(heartbeatAnswer, outcome.body);
    } catch {
      return null;
    }
  }
}

function leaderIn(outcome: Outcome): string | null {
  if (outcome.outcome !== "reply" || outcome.status !== 409) return null;
  try {
    return addressField.parse(readMessage(notLeader, outcome.body).leader_url);
  } catch {
    return null;
  }
}

function describe(target: string, outcome: Outcome): string {
  if (outcome.outcome !== "reply") return `${target} cannot be reached: ${outcome.reason}`;
  let message = `status ${outcome.status}`;
  try {
    const body = JSON.parse(outcome.body) as { message?: unknown };
    if (typeof body.message === "string") message = body.message;
  } catch {
    // The status says enough.
  }
  return `${target} does not let this node join: ${message}`;
}
