/**
 * Every node sends its presence to every other, each with a deadline, so that a silent peer delays nothing. The answers
 * give a voter without a record enough of the others' votes to vote again.
 */

import type { Ballot } from "../../core/leadership/vote-rules.ts";
import type { NodeName } from "../../core/ids.ts";
import { Loop, within } from "../../platform/loop.ts";
import type { HeartbeatAnswer, Presence } from "../rpc/bully-messages.ts";
import type { PeerCalls } from "./peer-calls.ts";
import type { PeerState } from "./peer-state.ts";

export class Heartbeats {
  readonly #state: PeerState;
  readonly #calls: PeerCalls;
  /** One at a time for each peer, however slow it is. */
  readonly #underWay = new Map<NodeName, Promise<void>>();
  /** What others have answered since the start; a request of theirs may have been on its way since before. */
  readonly #votes = new Map<NodeName, { readonly votes: boolean; readonly ballot: Ballot }>();
  /** Whether each peer was alive when it was logged last. */
  readonly #logged = new Map<NodeName, boolean>();
  readonly #loop: Loop;

  constructor(state: PeerState, calls: PeerCalls) {
    this.#state = state;
    this.#calls = calls;
    const { events, settings, clock } = state;
    this.#loop = new Loop(clock, async () => {
      this.#beat();
      return settings.heartbeatMs;
    });
    events.on("peers", () => void this.#tryToVote());
    events.on("ready", () => void this.sendToAll(settings.heartbeatTimeoutMs));
  }

  /** Resolves when this node votes, if it can without answers of others. */
  async start(): Promise<void> {
    this.#votes.clear();
    this.#logged.clear();
    this.#loop.start();
    await this.#tryToVote();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** Sends a heartbeat to every peer now; resolves when all have answered, or after `waitMs`. */
  async sendToAll(waitMs: number): Promise<void> {
    const { peers, clock } = this.#state;
    await within(clock, waitMs, Promise.all(peers.others().map((peer) => this.#send(peer))));
  }

  ping(peer: NodeName): Promise<void> {
    return this.#underWay.get(peer) ?? this.#send(peer);
  }

  /** From a member that calls us. A peer that was not alive before is asked at once, not with the next heartbeat. */
  receive(presence: Presence): void {
    const { name } = presence.node;
    const known = this.#state.presences.alive(name);
    this.#note(presence);
    if (!known && presence.status !== "dead") void this.ping(name);
  }

  #beat(): void {
    this.#logChanges();
    for (const peer of this.#state.peers.others()) {
      if (this.#underWay.has(peer)) continue;
      const sent = this.#send(peer).finally(() => this.#underWay.delete(peer));
      this.#underWay.set(peer, sent);
    }
  }

  async #send(peer: NodeName): Promise<void> {
    const request = { ...this.#state.sender(), ...this.#state.presence() };
    const { heartbeatTimeoutMs } = this.#state.settings;
    const asked = await this.#calls.ask(peer, "heartbeat", request, heartbeatTimeoutMs);
    if (asked.got === "answer") await this.#receiveAnswer(asked.value);
  }

  async #receiveAnswer(answer: HeartbeatAnswer): Promise<void> {
    const { peers, log } = this.#state;
    if (peers.agreed && answer.cluster !== (peers.set?.cluster ?? null)) return;
    this.#note(answer);
    this.#votes.set(answer.node.name, { votes: answer.votes, ballot: answer.ballot });
    try {
      if (answer.peers) await this.#state.adopt(answer.peers);
    } catch (error) {
      log.error({ err: error }, "the members of the cluster cannot be noted");
    }
    await this.#tryToVote();
  }

  #note(presence: Presence): void {
    const { presences, peers, events, identity, clock } = this.#state;
    const { name } = presence.node;
    const voted = presences.get(name)?.votes ?? false;
    presences.note(presence);
    if (presence.votes && !voted) events.emit("voter");
    presences.heard(presence.node);
    if (presence.address !== null) peers.moved(name, presence.address);
    const { leader } = presence;
    // No other node can know that this one leads.
    if (leader === null || leader.term.incarnation === identity.incarnation) return;
    const { term, leftMs, acquiredAt } = leader;
    void this.#state.noteLeader({ term, acquiredAt, until: clock.monotonic() + leftMs });
  }

  async #tryToVote(): Promise<void> {
    const { peers, voter, identity, log, events } = this.#state;
    const voters = peers.names();
    if (voter.votes || !voters.includes(identity.name)) return;
    const others = peers.others().flatMap((name) => this.#votes.get(name) ?? []);
    try {
      if (await voter.recollect(voters.length, others)) events.emit("ready");
    } catch (error) {
      log.error({ err: error }, "the votes of this node cannot be written; it does not vote");
    }
  }

  #logChanges(): void {
    const { peers, presences, settings, log } = this.#state;
    const others = peers.others();
    for (const peer of others) {
      const alive = presences.alive(peer);
      const presence = presences.get(peer);
      const unknown = presence === null && presences.silentMs(peer) < settings.deadAfterMs;
      if (unknown || this.#logged.get(peer) === alive) continue;
      this.#logged.set(peer, alive);
      if (alive) log.info({ peer }, "a node is here");
      else if (presence?.status === "dead") log.info({ peer }, "a node has left");
      else if (presence)
        log.warn({ peer }, "a node is not heard of any more; its jobs are out of reach until it is back");
      else log.warn({ peer }, "a node of this cluster was not heard of yet");
    }
    for (const peer of this.#logged.keys()) if (!others.includes(peer)) this.#logged.delete(peer);
  }
}
