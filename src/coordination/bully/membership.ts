import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity, NodeInfo, NodeStatus, OwnInfo } from "../../core/node.ts";
import type { Term } from "../../core/term.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import type { Membership, NodeWish } from "../coordination.ts";
import { WishSlot } from "../wish-slot.ts";
import type { Heartbeats } from "./heartbeats.ts";
import type { Members } from "./members.ts";
import { PATHS, wishAnswer } from "./messages.ts";
import type { PeerBook } from "./peer-book.ts";
import type { PeerCalls } from "./peer-calls.ts";
import type { Roster } from "./roster.ts";
import type { BullySettings } from "./settings.ts";

export interface BullyMembershipOptions {
  readonly identity: NodeIdentity;
  readonly info: () => OwnInfo;
  readonly clock: Clock;
  readonly log: Log;
  readonly settings: BullySettings;
  readonly roster: Roster;
  readonly book: PeerBook;
  readonly calls: PeerCalls;
  readonly heartbeats: Heartbeats;
  readonly members: Members;
  readonly remove: (node: NodeName) => Promise<boolean>;
}

/** A change of status is told at once; a peer that does not answer within this hears it with the next heartbeat. */
const TELL_MS = 200;

/** Who is in the cluster, as this node sees it. Nobody keeps the list: each has heard the others itself. */
export class BullyMembership implements Membership {
  readonly #o: BullyMembershipOptions;
  readonly #slot = new WishSlot();
  #status: NodeStatus = "joining";
  #forgetting: Promise<unknown> | null = null;

  constructor(options: BullyMembershipOptions) {
    this.#o = options;
  }

  /** Ready to work and in no cluster yet is still joining. Whoever was sent away stays what it was: it does not ask again. */
  get status(): NodeStatus {
    const { roster, identity } = this.#o;
    const outside = !roster.has(identity.name) && roster.removal(identity) !== "removed";
    return this.#status === "active" && outside ? "joining" : this.#status;
  }

  /** A new life. */
  begin(): void {
    this.#status = "joining";
  }

  /** The last word of this one. */
  async leave(): Promise<void> {
    this.#status = "dead";
    await this.#o.heartbeats.tellAll(TELL_MS);
  }

  nodes(): readonly NodeInfo[] {
    const { identity, info, clock, roster, book } = this.#o;
    const own = { ...info(), ...identity, status: this.status, lastSeenAt: clock.now(), alive: true };
    const show = (name: NodeName): NodeInfo =>
      name === own.name ? own : book.show(name, roster.address(name));
    const members = roster.names().map(show);
    if (roster.has(own.name)) return members;
    // A node that does not belong to them, yet or any more, knows itself all the same.
    return [own, ...members].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async setStatus(status: NodeStatus): Promise<void> {
    this.#status = status;
    await this.#o.heartbeats.tellAll(TELL_MS);
  }

  async ask(node: NodeName, wish: NodeWish): Promise<boolean> {
    const { identity, roster, calls, settings } = this.#o;
    if (node === identity.name) {
      this.hear(wish);
      return true;
    }
    if (!roster.has(node)) return false;
    const body = { from: identity, wish };
    const asked = await calls.ask(node, PATHS.wish, body, wishAnswer, {
      deadlineMs: settings.heartbeatTimeoutMs,
    });
    return "answer" in asked;
  }

  remove(node: NodeName): Promise<boolean> {
    return this.#o.remove(node);
  }

  hear(wish: NodeWish): void {
    this.#slot.put(wish);
  }

  wishes(signal: AbortSignal): AsyncIterable<NodeWish> {
    return this.#slot.follow(signal);
  }

  /** Told otherwise: a node whose name another life has taken is not let in, and the cluster does not form for it. */
  displaced(): string | null {
    return null;
  }

  /**
   * Nobody's work is taken back: every node keeps its own jobs, and goes on with them when it is back. Whoever has been silent
   * for too long is removed from a cluster that nodes join; in a list that was set everybody stays.
   */
  async findDead(_fence: Term): Promise<readonly NodeIdentity[]> {
    const { roster, book, settings } = this.#o;
    if (!roster.agreed || this.#forgetting) return [];
    const [gone] = roster.others().filter((name) => book.silentMs(name) >= settings.forgetAfterMs);
    if (gone) this.#forgetting = this.#forget(gone).finally(() => (this.#forgetting = null));
    return [];
  }

  async laidToRest(): Promise<void> {}

  async #forget(name: NodeName): Promise<void> {
    const { members, book, log } = this.#o;
    const incarnation = book.entry(name)?.presence.node.incarnation ?? "";
    try {
      await members.remove({ name, incarnation, why: "forgotten" });
    } catch (error) {
      log.warn({ peer: name, err: error }, "a node that was silent for long could not be removed yet");
    }
  }
}
