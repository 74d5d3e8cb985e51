/** Who is let in, and who is sent away. */

import { sameLife, type HeldTerm } from "../../core/ballot.ts";
import { BatonError, hasCode } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";
import { isMember, type PeerSet } from "../../core/peer-set.ts";
import type { LeaderWatch } from "./leader-watch.ts";
import type { Members } from "./members.ts";
import { heartbeatAnswer, joinAnswer, PATHS, type Presence } from "./messages.ts";
import type { PeerBook } from "./peer-book.ts";
import type { PeerCalls } from "./peer-calls.ts";
import type { Roster } from "./roster.ts";
import type { BullySettings } from "./settings.ts";

export interface AdmissionOptions {
  readonly identity: NodeIdentity;
  readonly settings: BullySettings;
  readonly roster: Roster;
  readonly members: Members;
  readonly book: PeerBook;
  readonly calls: PeerCalls;
  readonly watch: LeaderWatch;
  readonly presence: () => Presence;
}

export type Admitted =
  /** `fresh`: never a member before, so it can have promised nothing. */
  | { readonly fresh: boolean; readonly leader: HeldTerm | null; readonly peers: PeerSet }
  | { readonly removed: true; readonly peers: PeerSet };

export class Admission {
  readonly #o: AdmissionOptions;

  constructor(options: AdmissionOptions) {
    this.#o = options;
  }

  /** The same join twice does nothing. Without an incarnation whatever life of that name answers at the address is meant. */
  async join(from: NodeIdentity, address: string): Promise<Admitted> {
    const { roster, members, identity } = this.#o;
    const set = this.#set();
    if (sameLife(from, identity)) throw new BatonError("BAD_REQUEST", "a node cannot join through itself");
    if (!set) throw members.notLeader();
    if (
      set.removed.some(
        ({ name, incarnation, why }) =>
          why === "removed" && name === from.name && incarnation === from.incarnation && incarnation !== "",
      )
    )
      return { removed: true, peers: set };
    const known = isMember(set, from.name);
    if (known) {
      this.#refuseNamesake(from);
      const proved = from.incarnation !== "";
      // In the name of a node that lives: it says itself where it is, and a wrong address would cut it off.
      if (!proved && this.#lives(from.name)) return { fresh: false, leader: null, peers: set };
      if (proved) roster.moved(from.name, address);
      // Whoever is a member is told so by anybody, also while nobody leads.
      if (set.members[from.name] === address || (proved && !this.leads))
        return { fresh: false, leader: null, peers: set };
    }
    const leader = members.require();
    await this.#meet(from, address);
    const fresh = !known && !set.removed.some((life) => life.name === from.name);
    await members.add(from.name, address);
    return { fresh, leader, peers: this.#set() ?? set };
  }

  /** For somebody who asked this node and does not know who leads. */
  async passJoin(from: NodeIdentity, address: string): Promise<void> {
    const { members, calls, settings } = this.#o;
    try {
      const admitted = await this.join(from, address);
      if ("removed" in admitted)
        throw new BatonError("FORBIDDEN", `${from.name} was removed from this cluster`);
    } catch (error) {
      const leader = hasCode(error, "NOT_LEADER") ? (error.details["leader"] as NodeName | null) : null;
      if (leader === null) throw error;
      const deadlineMs = 4 * settings.heartbeatTimeoutMs;
      const asked = await calls.ask(leader, PATHS.join, { op: "join", from, address }, joinAnswer, {
        deadlineMs,
      });
      if (!("answer" in asked)) throw members.notLeader();
    }
  }

  /** False when it was no member. */
  async remove(name: NodeName): Promise<boolean> {
    const { members, book, identity } = this.#o;
    this.#set();
    members.require();
    const known = name === identity.name ? identity : book.entry(name)?.presence.node;
    return members.remove({ name, incarnation: known?.incarnation ?? "", why: "removed" });
  }

  get leads(): boolean {
    try {
      this.#o.members.require();
      return true;
    } catch {
      return false;
    }
  }

  #set(): PeerSet | null {
    const { roster } = this.#o;
    if (roster.agreed) return roster.set;
    throw new BatonError(
      "FORBIDDEN",
      "the members of this cluster are a list in the configuration; change it there, on every node",
    );
  }

  /** A member that nobody reaches would only be missing from every majority. */
  async #meet(from: NodeIdentity, address: string): Promise<void> {
    const { calls, identity, settings, presence } = this.#o;
    const greeting = { from: identity, set: null, ...presence() };
    const options = { deadlineMs: settings.heartbeatTimeoutMs };
    const met = await calls.askAt(from.name, address, PATHS.heartbeat, greeting, heartbeatAnswer, options);
    const node = "answer" in met ? met.answer.node : null;
    if (node?.name === from.name && (from.incarnation === "" || node.incarnation === from.incarnation))
      return;
    throw new BatonError(
      "BAD_REQUEST",
      `${from.name} cannot be reached at ${address}; give the address at which others reach it`,
      { field: "body.address" },
    );
  }

  #lives(name: NodeName): boolean {
    return name === this.#o.identity.name || this.#o.book.alive(name);
  }

  #refuseNamesake(from: NodeIdentity): void {
    const { book, watch } = this.#o;
    const node = book.entry(from.name)?.presence.node;
    if (from.incarnation === "" || !node || sameLife(node, from) || !book.alive(from.name)) return;
    // A restart between two heartbeats looks the same. It asks again, and by then the old life was found gone.
    void watch.check(node);
    throw new BatonError(
      "NAME_IN_USE",
      `another living node is called ${from.name}; give this one another name, or stop the other`,
      { field: "body.from.name" },
    );
  }
}
