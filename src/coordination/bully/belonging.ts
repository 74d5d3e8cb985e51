/** Which cluster this node belongs to, where that is agreed on and not set: taking over sets, being sent away, going back. */

import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";
import { compareSets, isMember, type PeerSet, type RemovedLife } from "../../core/peer-set.ts";
import type { Log } from "../../platform/log.ts";
import { joinAnswer, PATHS, readMessage, type Presence } from "./messages.ts";
import type { PeerCalls } from "./peer-calls.ts";
import type { Roster } from "./roster.ts";
import type { Voter } from "./voter.ts";

export interface BelongingOptions {
  readonly identity: NodeIdentity;
  readonly log: Log;
  readonly roster: Roster;
  readonly voter: Voter;
  readonly calls: PeerCalls;
  readonly callMs: number;
  readonly address: () => string | null;
  readonly onJoined: () => void;
  /** Asks to be a member again. */
  readonly rejoin: () => void;
}

const STRANGERS_MAX = 100;

export class Belonging {
  readonly #o: BelongingOptions;
  /** Who calls us and is in no list. */
  readonly strangers = new Set<NodeName>();
  #removed: RemovedLife["why"] | null = null;
  #returning = false;

  constructor(options: BelongingOptions) {
    this.#o = options;
  }

  get removed(): boolean {
    return this.#removed === "removed";
  }

  begin(): void {
    this.#removed = null;
    this.strangers.clear();
  }

  joined(): void {
    this.#removed = null;
    this.#o.onJoined();
  }

  /** Takes over a newer set of our cluster, or the first that names us. */
  async adopt(set: PeerSet): Promise<void> {
    const { roster, voter } = this.#o;
    const ours = roster.set;
    const older = ours !== null && (ours.cluster !== set.cluster || compareSets(set, ours) <= 0);
    if (roster.agreed && !older) await voter.note(set);
  }

  /** Another set is in force, however it came. */
  changed(before: PeerSet | null): void {
    const { roster, identity } = this.#o;
    const member = before !== null && isMember(before, identity.name);
    if (!member || roster.has(identity.name)) return;
    // An earlier life was removed while it was away; this one has been started since.
    this.#sentAway(roster.removal(identity) ?? "forgotten");
  }

  /** The same where nobody waits for it. */
  offer(set: PeerSet): void {
    this.adopt(set).catch((error: unknown) =>
      this.#o.log.error({ err: error }, "the members cannot be noted"),
    );
  }

  hearRemoval(why: RemovedLife["why"], peers: PeerSet | null): void {
    if (peers) this.offer(peers);
    else this.#sentAway(why);
  }

  meetStranger(name: NodeName, told: Presence | null): void {
    const { roster } = this.#o;
    if (!roster.agreed && this.strangers.size < STRANGERS_MAX) this.strangers.add(name);
    if (told?.cluster && told.address && roster.set && told.cluster !== roster.set.cluster)
      void this.#returnTo(told.address, roster.set);
  }

  #sentAway(why: RemovedLife["why"]): void {
    if (this.#removed !== null) return;
    this.#removed = why;
    this.#o.log.warn({ why }, "this node was removed from the cluster");
    // Forgotten only because it was silent for long: it is back, so it asks again.
    if (why === "forgotten") this.#o.rejoin();
  }

  /** A founder whose disk was lost has founded anew; the cluster that it belongs to still calls it. */
  async #returnTo(address: string, set: PeerSet): Promise<void> {
    const { roster, identity, voter, log, callMs } = this.#o;
    const own = this.#o.address();
    if (this.#returning || own === null || roster.others().length > 0) return;
    this.#returning = true;
    try {
      const body = { op: "join", from: identity, address: own };
      const outcome = await this.#o.calls.call(address, PATHS.join, body, { deadlineMs: callMs });
      if (outcome.outcome !== "reply" || outcome.status !== 200) return;
      const { peers } = readMessage(joinAnswer, outcome.body);
      if (peers.cluster === set.cluster || !isMember(peers, identity.name)) return;
      log.warn({ address }, "this node belongs to another cluster than the one that it founded; going back");
      await voter.forget();
      await this.adopt(peers);
      this.joined();
    } catch (error) {
      log.warn({ err: error }, "could not go back to the cluster that calls this node");
    } finally {
      this.#returning = false;
    }
  }
}
