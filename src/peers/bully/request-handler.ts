/** Answers the requests of peers. From a node that is not a member, only a request to join is accepted. */

import type { z } from "zod";
import { sameIncarnation } from "../../core/leadership/vote-rules.ts";
import { compareNames } from "../../core/leadership/bully.ts";
import { BatonError, ERRORS } from "../../core/errors.ts";
import type { NodeIdentity } from "../../core/node.ts";
import {
  compareSets,
  type PeerSet,
  type RemovedIncarnation,
  type SetNumber,
} from "../../core/leadership/peer-set.ts";
import type { Log } from "../../platform/log.ts";
import type { PeerReply, ReceivedRequest } from "../../transport/transport.ts";
import type { MemberAdmission } from "./joining/member-admission.ts";
import type { Candidacy } from "./election/candidacy.ts";
import type { Heartbeats } from "./heartbeats.ts";
import type { LeaderWatch } from "./election/leader-watch.ts";
import type { MemberChanges } from "./joining/member-changes.ts";
import type { BullyMembership } from "./membership.ts";
import * as messages from "./messages.ts";
import { PATHS, readMessage, type Presence } from "./messages.ts";
import type { PeerState } from "./peer-state.ts";
import type { VoteRequests } from "./election/vote-requests.ts";

export interface BullyRequestHandlerOptions {
  readonly state: PeerState;
  readonly requests: VoteRequests;
  readonly candidacy: Candidacy;
  readonly heartbeats: Heartbeats;
  readonly watch: LeaderWatch;
  readonly changes: MemberChanges;
  readonly admission: MemberAdmission;
  readonly membership: BullyMembership;
}

export class BullyRequestHandler {
  readonly #o: BullyRequestHandlerOptions;

  constructor(options: BullyRequestHandlerOptions) {
    this.#o = options;
  }

  async handle(request: ReceivedRequest): Promise<PeerReply> {
    try {
      return await this.#route(request);
    } catch (error) {
      return failure(error, this.#o.state.log);
    }
  }

  async #route(request: ReceivedRequest): Promise<PeerReply> {
    const { state, requests, membership } = this.#o;
    const { pathname } = new URL(request.path, "http://peer");
    const { body } = request;
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
        // A leader that removed itself releases its term when it is not a member any more.
        const last = asked.op === "release" && state.peers.removal(asked.from) !== null;
        const refusal = last ? null : this.#ofMember(request, asked.from);
        return refusal ?? json(await requests.answer(asked, asked.set));
      }
      case PATHS.coordinator: {
        const asked = readMessage(messages.coordinator, body);
        const refusal = this.#ofMember(request, asked.from);
        return refusal ?? json(await requests.answer({ ...asked, op: "renew" }, asked.set));
      }
      case PATHS.join:
        return this.#join(request, readMessage(messages.joinAsked, body));
      case PATHS.remove:
        return this.#remove(request, readMessage(messages.removeAsked, body));
      case PATHS.request: {
        const asked = readMessage(messages.nodeRequest, body);
        const refusal = this.#ofMember(request, asked.from);
        if (!refusal) membership.receive(asked.request);
        return refusal ?? json({ node: state.identity });
      }
      default:
        throw new BatonError("NOT_FOUND", `there is nothing at ${pathname.slice(0, 200)}`);
    }
  }

  /** Null for a member; otherwise the reply to it. */
  #ofMember(request: ReceivedRequest, from: NodeIdentity): PeerReply | null {
    const { state } = this.#o;
    const { peers, identity } = state;
    // Over the wire the sender has proved its name; in memory `from` is an address, which no name can be.
    if (request.from !== from.name && peers.has(request.from)) {
      throw new BatonError("FORBIDDEN", `${request.from} speaks in the name of ${from.name}`);
    }
    if (from.name === identity.name && !sameIncarnation(from, identity)) {
      throw new BatonError(
        "NAME_IN_USE",
        `another living node is called ${from.name}; give one of them another name`,
        {
          field: "from.name",
        },
      );
    }
    if (peers.has(from.name)) return null;
    const removed = peers.removal(from);
    if (removed) return removal(from.name, removed, peers.set);
    state.meetStranger(from.name, null);
    throw new BatonError("FORBIDDEN", `${from.name} is no member of this cluster; its messages are ignored`);
  }

  async #heartbeat(request: ReceivedRequest, beat: Presence & { from: NodeIdentity; set: SetNumber | null }) {
    const { state, heartbeats } = this.#o;
    const { peers } = state;
    const newer = state.newerThan(beat.set) ? peers.set : null;
    if (!peers.has(beat.from.name) && peers.agreed && !peers.removal(beat.from)) {
      // A node that seeks a cluster: it may read our presence, and does not count.
      state.meetStranger(beat.from.name, beat);
      // Or a node that believes to be a member of ours.
      const ours = beat.cluster !== null && beat.cluster === peers.set?.cluster;
      return json({ ...state.presence(), peers: ours ? newer : null });
    }
    const refusal = this.#ofMember(request, beat.from);
    if (refusal) return refusal;
    heartbeats.receive(beat);
    return json({ ...state.presence(), peers: newer });
  }

  async #election(candidate: NodeIdentity, set: SetNumber | null): Promise<PeerReply> {
    const { state, watch, candidacy } = this.#o;
    const { identity, voter, settings, peers } = state;
    const holder = voter.holder();
    // The candidate may know better than this node that the leader has died: check it here too.
    if (holder && !sameIncarnation(holder, candidate)) await watch.check(holder);
    const willing = voter.willing(candidate, set);
    const above = compareNames(identity.name, candidate.name, settings.order) > 0;
    const stands = willing && above && voter.votes && candidacy.stands && state.status !== "draining";
    if (stands) candidacy.hint();
    return json({
      node: identity,
      votes: voter.votes,
      willing,
      stands,
      epoch: voter.epoch,
      peers: state.newerThan(set) ? peers.set : null,
    });
  }

  async #join(request: ReceivedRequest, asked: z.output<typeof messages.joinAsked>) {
    const { state, changes, admission } = this.#o;
    const { peers, identity, voter } = state;
    if (asked.op === "join") {
      const admitted = await admission.join(asked.from, asked.address);
      if ("removed" in admitted) return removal(asked.from.name, "removed", admitted.peers);
      return json({ node: identity, ...admitted });
    }
    const ours = voter.peers;
    // A set that came from others already. A leader that removed itself is not in it, and still waits for the answer.
    const known = ours?.cluster === asked.peers.cluster && compareSets(ours, asked.peers) === 0;
    if (ours === null) await state.adopt(asked.peers);
    else if (!known && !peers.has(asked.from.name)) return this.#ofMember(request, asked.from)!;
    const noted = await changes.noted(asked.term, asked.ttlMs, asked.peers);
    return json({ node: identity, noted, epoch: voter.epoch });
  }

  async #remove(request: ReceivedRequest, asked: z.output<typeof messages.removeAsked>) {
    const { state, admission } = this.#o;
    const refusal = this.#ofMember(request, asked.from);
    if (refusal) return refusal;
    if (asked.op === "removed") await state.adopt(asked.peers);
    else await admission.remove(asked.name);
    return json({ node: state.identity });
  }
}

function removal(name: string, why: RemovedIncarnation["why"], peers: PeerSet | null): PeerReply {
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
