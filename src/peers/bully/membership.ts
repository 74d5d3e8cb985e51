/**
 * The nodes of the cluster as this node sees them. There is no shared list: each node receives the heartbeats of the
 * others itself.
 */

import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity, NodeInfo, NodeStatus } from "../../core/node.ts";
import type { Term } from "../../core/leadership/term.ts";
import type { Membership, NodeRequest } from "../../leadership/coordination.ts";
import { PendingRequest } from "../../leadership/pending-request.ts";
import type { MemberAdmission } from "./joining/member-admission.ts";
import type { Heartbeats } from "./heartbeats.ts";
import type { MemberChanges } from "./joining/member-changes.ts";
import { PATHS, nodeRequestAnswer } from "./messages.ts";
import type { PeerCalls } from "./peer-calls.ts";
import type { PeerState } from "./peer-state.ts";

export interface BullyMembershipOptions {
  readonly state: PeerState;
  readonly calls: PeerCalls;
  readonly heartbeats: Heartbeats;
  readonly changes: MemberChanges;
  readonly admission: MemberAdmission;
}

/** A change of status is sent at once; a peer that does not answer within this time hears it with the next heartbeat. */
const SEND_MS = 200;

export class BullyMembership implements Membership {
  readonly #o: BullyMembershipOptions;
  readonly #pending = new PendingRequest();
  #forgetting: Promise<unknown> | null = null;

  constructor(options: BullyMembershipOptions) {
    this.#o = options;
  }

  nodes(): readonly NodeInfo[] {
    const { state } = this.#o;
    const { identity, clock, peers, presences } = state;
    const own = { ...state.info, ...identity, status: state.status, lastSeenAt: clock.now(), alive: true };
    const show = (name: NodeName): NodeInfo =>
      name === own.name ? own : presences.show(name, peers.address(name));
    const members = peers.names().map(show);
    if (peers.has(own.name)) return members;
    // A node that is not a member, yet or any more, still shows itself.
    return [own, ...members].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async setStatus(status: NodeStatus): Promise<void> {
    this.#o.state.setStatus(status);
    await this.#o.heartbeats.sendToAll(SEND_MS);
  }

  async ask(node: NodeName, request: NodeRequest): Promise<boolean> {
    const { state, calls } = this.#o;
    const { identity, peers, settings } = state;
    if (node === identity.name) {
      this.receive(request);
      return true;
    }
    if (!peers.has(node)) return false;
    const body = { from: identity, request };
    const asked = await calls.ask(node, PATHS.request, body, nodeRequestAnswer, {
      deadlineMs: settings.heartbeatTimeoutMs,
    });
    return "answer" in asked;
  }

  remove(node: NodeName): Promise<boolean> {
    return this.#o.admission.remove(node);
  }

  receive(request: NodeRequest): void {
    this.#pending.put(request);
  }

  requests(signal: AbortSignal): AsyncIterable<NodeRequest> {
    return this.#pending.follow(signal);
  }

  /** Cannot happen: a node whose name another incarnation has taken does not get into the cluster. */
  displaced(): string | null {
    return null;
  }

  /**
   * No work is taken back: every node keeps its own jobs, and goes on with them when it is back. A node that was silent for too
   * long is removed from a cluster that nodes join; a configured list stays as it is.
   */
  async findDead(_fence: Term): Promise<readonly NodeIdentity[]> {
    const { peers, presences, settings } = this.#o.state;
    if (!peers.agreed || this.#forgetting) return [];
    const [gone] = peers.others().filter((name) => presences.silentMs(name) >= settings.forgetAfterMs);
    if (gone) this.#forgetting = this.#forget(gone).finally(() => (this.#forgetting = null));
    return [];
  }

  async markRecovered(): Promise<void> {}

  async #forget(name: NodeName): Promise<void> {
    const { state, changes } = this.#o;
    const incarnation = state.presences.get(name)?.node.incarnation ?? "";
    try {
      await changes.remove({ name, incarnation, why: "forgotten" });
    } catch (error) {
      state.log.warn({ peer: name, err: error }, "a node that was silent for long could not be removed yet");
    }
  }
}
