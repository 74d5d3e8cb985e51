/** What this node answers to its peers. Whoever is no member is heard only when it wants to be one. */

import type { z } from "zod";
import { sameLife } from "../../core/ballot.ts";
import { compareNames } from "../../core/bully.ts";
import { BatonError, ERRORS } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";
import { compareSets, type PeerSet, type RemovedLife, type SetNumber } from "../../core/peer-set.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import type { PeerReply, ReceivedRequest } from "../../transport/transport.ts";
import type { NodeWish } from "../coordination.ts";
import type { Admission } from "./admission.ts";
import type { Ballots } from "./ballots.ts";
import { holdMs, type LeaderWatch } from "./leader-watch.ts";
import type { Members } from "./members.ts";
import * as messages from "./messages.ts";
import { PATHS, readMessage, type Presence } from "./messages.ts";
import type { Roster } from "./roster.ts";
import type { BullySettings } from "./settings.ts";
import type { Standing } from "./standing.ts";
import type { Voter } from "./voter.ts";

export interface HandlerOptions {
  readonly identity: NodeIdentity;
  readonly clock: Clock;
  readonly log: Log;
  readonly settings: BullySettings;
  readonly roster: Roster;
  readonly voter: Voter;
  readonly ballots: Ballots;
  readonly standing: Standing;
  readonly watch: LeaderWatch;
  readonly members: Members;
  readonly admission: Admission;
  readonly draining: () => boolean;
  readonly presence: () => Presence;
  readonly onPresence: (presence: Presence) => void;
  /** Somebody who is no member, and what it says of itself if it does. */
  readonly onStranger: (name: NodeName, presence: Presence | null) => void;
  /** A set that names us, from a cluster that we may not know of. */
  readonly adopt: (set: PeerSet) => Promise<void>;
  readonly onWish: (wish: NodeWish) => void;
  readonly stopping: () => AbortSignal;
}

export class Handler {
  readonly #o: HandlerOptions;

  constructor(options: HandlerOptions) {
    this.#o = options;
  }

  async handle(request: ReceivedRequest): Promise<PeerReply> {
    try {
      return await this.#route(request);
    } catch (error) {
      return failure(error, this.#o.log);
    }
  }

  async #route(request: ReceivedRequest): Promise<PeerReply> {
    const { pathname, searchParams } = new URL(request.path, "http://peer");
    const { body } = request;
    if (pathname === PATHS.heartbeat && request.method === "GET") {
      return this.#hold(Number(searchParams.get("wait") ?? 0), request.signal);
    }
    if (request.method !== "POST") throw new BatonError("METHOD_NOT_ALLOWED", `POST ${pathname}`);
    switch (pathname) {
      case PATHS.heartbeat:
        return this.#heartbeat(request, readMessage(messages.heartbeat, body));
      case PATHS.election: {
        const asked = readMessage(messages.electionAsked, body);
        return this.#ofMember(request, asked.from) ?? this.#election(asked.candidate, asked.set);
      }
      case PATHS.vote: {
        const asked = readMessage(messages.voteAsked, body);
        // A leader that removed itself gives its term back when it is a member no more.
        const last = asked.op === "release" && this.#o.roster.removal(asked.from) !== null;
        const refusal = last ? null : this.#ofMember(request, asked.from);
        return refusal ?? json(await this.#o.ballots.answer(asked, asked.set));
      }
      case PATHS.coordinator: {
        const word = readMessage(messages.coordinator, body);
        const refusal = this.#ofMember(request, word.from);
        return refusal ?? json(await this.#o.ballots.answer({ ...word, op: "renew" }, word.set));
      }
      case PATHS.join:
        return this.#join(request, readMessage(messages.joinAsked, body));
      case PATHS.remove:
        return this.#remove(request, readMessage(messages.removeAsked, body));
      case PATHS.wish: {
        const asked = readMessage(messages.wishAsked, body);
        const refusal = this.#ofMember(request, asked.from);
        if (!refusal) this.#o.onWish(asked.wish);
        return refusal ?? json({ node: this.#o.identity });
      }
      default:
        throw new BatonError("NOT_FOUND", `there is nothing at ${pathname.slice(0, 200)}`);
    }
  }

  /** Held until somebody stops waiting: the end of the connection tells that one of the two processes has ended. */
  async #hold(waitMs: number, signal?: AbortSignal): Promise<PeerReply> {
    const { clock, stopping, identity } = this.#o;
    const over = signal ? AbortSignal.any([signal, stopping()]) : stopping();
    const heldMs = holdMs(waitMs);
    if (heldMs > 0) await clock.sleep(heldMs, over);
    return stopping().aborted
      ? json({ error: "STOPPED", message: "shutting down" }, 503)
      : json({ node: identity });
  }

  /** Null for a member; what it is told otherwise. */
  #ofMember(request: ReceivedRequest, from: NodeIdentity): PeerReply | null {
    const { roster, identity, onStranger } = this.#o;
    // Over the wire the sender has proved its name; in memory `from` is an address, which no name can be.
    if (request.from !== from.name && roster.has(request.from)) {
      throw new BatonError("FORBIDDEN", `${request.from} speaks in the name of ${from.name}`);
    }
    if (from.name === identity.name && !sameLife(from, identity)) {
      throw new BatonError(
        "NAME_IN_USE",
        `another living node is called ${from.name}; give one of them another name`,
        {
          field: "from.name",
        },
      );
    }
    if (roster.has(from.name)) return null;
    const removed = roster.removal(from);
    if (removed) return removal(from.name, removed, roster.set);
    onStranger(from.name, null);
    throw new BatonError("FORBIDDEN", `${from.name} is no member of this cluster; its messages are ignored`);
  }

  async #heartbeat(request: ReceivedRequest, beat: Presence & { from: NodeIdentity; set: SetNumber | null }) {
    const { roster, onPresence, onStranger } = this.#o;
    if (!roster.has(beat.from.name) && roster.agreed && !roster.removal(beat.from)) {
      // A node that looks for a cluster: it may see us, and counts for nothing.
      onStranger(beat.from.name, beat);
      // Or one that believes to belong to ours.
      const ours = beat.cluster !== null && beat.cluster === roster.set?.cluster;
      return json(this.#presence(ours && this.#older(beat.set) ? roster.set : null));
    }
    const refusal = this.#ofMember(request, beat.from);
    if (refusal) return refusal;
    onPresence(beat);
    return json(this.#presence(this.#older(beat.set) ? roster.set : null));
  }

  /** Than the set that we know. */
  #older(set: SetNumber | null): boolean {
    const ours = this.#o.roster.set;
    return ours !== null && (set === null || compareSets(set, ours) < 0);
  }

  #presence(peers: PeerSet | null): Presence & { peers: PeerSet | null } {
    return { ...this.#o.presence(), peers };
  }

  async #election(candidate: NodeIdentity, set: SetNumber | null): Promise<PeerReply> {
    const { identity, voter, watch, standing, settings, roster, draining } = this.#o;
    const holder = voter.holder();
    // The candidate may know better than we do that the leader has died: we look for ourselves.
    if (holder && !sameLife(holder, candidate)) await watch.check(holder);
    const willing = voter.willing(candidate, set);
    const above = compareNames(identity.name, candidate.name, settings.order) > 0;
    const stands = willing && above && voter.votes && standing.stands && !draining();
    if (stands) standing.hint();
    return json({
      node: identity,
      votes: voter.votes,
      willing,
      stands,
      epoch: voter.epoch,
      peers: this.#older(set) ? roster.set : null,
    });
  }

  async #join(request: ReceivedRequest, asked: z.output<typeof messages.joinAsked>) {
    const { roster, identity, voter, members, admission, adopt } = this.#o;
    if (asked.op === "join") {
      const admitted = await admission.join(asked.from, asked.address);
      if ("removed" in admitted) return removal(asked.from.name, "removed", admitted.peers);
      return json({ node: identity, ...admitted });
    }
    const ours = voter.peers;
    // Heard from others already; whoever removed itself is no member in it, and still waits for the answer.
    const known = ours?.cluster === asked.peers.cluster && compareSets(ours, asked.peers) === 0;
    if (ours === null) await adopt(asked.peers);
    else if (!known && !roster.has(asked.from.name)) return this.#ofMember(request, asked.from)!;
    const noted = await members.noted(asked.term, asked.ttlMs, asked.peers);
    return json({ node: identity, noted, epoch: voter.epoch });
  }

  async #remove(request: ReceivedRequest, asked: z.output<typeof messages.removeAsked>) {
    const { identity, admission, adopt } = this.#o;
    const refusal = this.#ofMember(request, asked.from);
    if (refusal) return refusal;
    if (asked.op === "told") await adopt(asked.peers);
    else await admission.remove(asked.name);
    return json({ node: identity });
  }
}

function removal(name: string, why: RemovedLife["why"], peers: PeerSet | null): PeerReply {
  const message = `${name} was removed from this cluster; start it again to join anew`;
  return json({ error: "REMOVED", message, removed: why, peers }, 410);
}

export function json(body: object, status = 200): PeerReply {
  return { status, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

export function failure(error: unknown, log: Log): PeerReply {
  if (error instanceof BatonError) {
    const { code, message, details, status } = error;
    return json({ error: code, message, ...details }, status);
  }
  log.error({ err: error }, "a peer's request failed");
  return json({ error: "INTERNAL", message: "see the log of this node" }, ERRORS.INTERNAL.status);
}
