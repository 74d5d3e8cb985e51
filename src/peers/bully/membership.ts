/** The nodes of the cluster as this node sees them: there is no shared list. */

import { BatonError } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity, NodeInfo, NodeStatus } from "../../core/node.ts";
import type { Term } from "../../core/leadership/term.ts";
import { PendingRequest, type Membership, type NodeRequest } from "../../leadership/coordination.ts";
import type { Heartbeats } from "./heartbeats.ts";
import type { MemberChanges } from "./joining/member-changes.ts";
import type { PeerCalls } from "./peer-calls.ts";
import type { PeerState } from "./peer-state.ts";

/** A change of status is sent at once; a peer that does not answer within this time hears it with the next heartbeat. */
const SEND_MS = 200;

export class BullyMembership implements Membership {
  readonly #state: PeerState;
  readonly #calls: PeerCalls;
  readonly #heartbeats: Heartbeats;
  readonly #changes: MemberChanges;
  readonly #pending = new PendingRequest();
  #forgetting = false;

  constructor(state: PeerState, calls: PeerCalls, heartbeats: Heartbeats, changes: MemberChanges) {
    this.#state = state;
    this.#calls = calls;
    this.#heartbeats = heartbeats;
    this.#changes = changes;
  }

  nodes(): readonly NodeInfo[] {
    const { identity, clock, peers, presences, info, status } = this.#state;
    const own = { ...info, ...identity, status, lastSeenAt: clock.now(), alive: true };
    const show = (name: NodeName): NodeInfo =>
      name === own.name ? own : presences.show(name, peers.address(name));
    const members = peers.names().map(show);
    if (peers.has(own.name)) return members;
    // A node that is not a member, yet or any more, still shows itself.
    return [own, ...members].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async setStatus(status: NodeStatus): Promise<void> {
    this.#state.setStatus(status);
    await this.#heartbeats.sendToAll(SEND_MS);
  }

  async ask(node: NodeName, request: NodeRequest): Promise<boolean> {
    const { identity, peers, settings } = this.#state;
    if (node === identity.name) {
      this.receive(request);
      return true;
    }
    if (!peers.has(node)) return false;
    const body = { from: identity, request };
    const asked = await this.#calls.ask(node, "request", body, settings.heartbeatTimeoutMs);
    if (asked.got !== "unknown") return asked.got === "answer";
    const effect = request === "drain" ? "be draining" : "take work again";
    const message = `${node} did not answer, and may ${effect}; ask again (${asked.reason})`;
    throw new BatonError("NODE_UNREACHABLE", message, { node, outcome: "unknown" });
  }

  remove(node: NodeName): Promise<boolean> {
    return this.#changes.remove(node);
  }

  receive(request: NodeRequest): void {
    this.#pending.put(request);
  }

  requests(signal: AbortSignal): AsyncIterable<NodeRequest> {
    return this.#pending.follow(signal);
  }

  /** A node whose name another incarnation has taken does not get into the cluster. */
  displaced(): string | null {
    return null;
  }

  /** No work is taken back: every node keeps its own jobs. A node that was silent for too long is removed where nodes join. */
  async findDead(_fence: Term): Promise<readonly NodeIdentity[]> {
    const { peers, presences, settings, log } = this.#state;
    if (!peers.agreed || this.#forgetting) return [];
    const gone = peers.others().find((name) => presences.silentMs(name) >= settings.forgetAfterMs);
    if (gone === undefined) return [];
    this.#forgetting = true;
    void this.#changes
      .remove(gone, "forgotten")
      .catch((err) =>
        log.warn({ peer: gone, err }, "a node that was silent for long could not be removed yet"),
      )
      .finally(() => (this.#forgetting = false));
    return [];
  }

  async markRecovered(): Promise<void> {}
}
