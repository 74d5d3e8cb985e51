/**
 * Coordination by the peers themselves: no database and no broker, only the nodes and what each has on its disk.
 *
 * The seed's rule stays: the highest name wins, and one that comes back does not push a healthy leader out. What makes a term
 * is new: promises of a majority of voters, numbered and on disk (lock.ts, voter.ts). Without a majority nobody leads; with
 * `quorum: none` whoever is left does, and two halves of a split cluster have a leader each until they meet again.
 *
 * The other leader roles are local: every node looks after its own store.
 */

import { BatonError } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import type { LeaderRole, Term } from "../../core/term.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { PeerReply, ReceivedRequest } from "../../transport/transport.ts";
import type { Coordination, LeaseLock, Membership } from "../coordination.ts";
import { bullyNotes, otherLists, SPLIT_BRAIN } from "./notes.ts";
import { buildParts, ROLE, type BullyOptions, type BullyParts } from "./parts.ts";

export type { BullyOptions } from "./parts.ts";

export function openBully(options: BullyOptions): BullyCoordination {
  return new BullyCoordination(options);
}

export class BullyCoordination extends Lifecycle implements Coordination {
  readonly kind = "bully";
  readonly #o: BullyOptions;
  readonly #parts: BullyParts;
  #stopping = new AbortController();
  #joining: Promise<void> = Promise.resolve();

  constructor(options: BullyOptions) {
    super();
    this.#o = options;
    this.#parts = buildParts(options, {
      usable: () => {
        if (!this.running) throw new BatonError("STOPPED", "the coordination of peers is not running");
      },
      stopping: () => this.#stopping.signal,
      rejoin: () => this.#join(),
    });
  }

  get membership(): Membership {
    return this.#parts.membership;
  }

  lock(role: LeaderRole): LeaseLock {
    return role === ROLE ? this.#parts.lock : this.#o.local.lock(role);
  }

  /** Answers a peer; whoever passes the request on has made sure from whom it is. */
  async handle(request: ReceivedRequest): Promise<PeerReply> {
    if (this.running) return this.#parts.handler.handle(request);
    const body = JSON.stringify({ error: "STOPPED", message: "this node does not take part now" });
    return { status: 503, headers: { "content-type": "application/json" }, body };
  }

  /** Of the list of nodes that was set; null where nodes join. */
  get configHash(): string | null {
    return this.#parts.roster.hash;
  }

  /** False while somebody who lives has another list: a node that is missing here may be in it. */
  get agreed(): boolean {
    const { belonging } = this.#parts;
    return belonging.strangers.size === 0 && otherLists(this.#parts).length === 0;
  }

  /** Everybody whose vote counts, ourselves among them, also those that are dead. */
  voters(): readonly NodeName[] {
    return this.#parts.roster.names();
  }

  /** Where peers reach a member; null for whoever is none. */
  address(name: NodeName): string | null {
    return this.#parts.roster.address(name);
  }

  /** Where the join server of a member is reached, if it has one and was heard since this node started. */
  manager(name: NodeName): string | null {
    if (name === this.#o.identity.name) return this.#o.manager?.() ?? null;
    return this.#parts.book.entry(name)?.presence.manager ?? null;
  }

  /** Lets a node in that asks through this one; whoever leads does it. */
  join(name: NodeName, address: string): Promise<void> {
    return this.#parts.admission.passJoin({ name, incarnation: "" }, address);
  }

  /** Sends a member away; only the leader does it. False when it was none. */
  remove(name: NodeName): Promise<boolean> {
    return this.#parts.admission.remove(name);
  }

  /** Whoever leads, as this node knows. */
  leader(): Term | null {
    return this.#parts.view.current();
  }

  /** Somebody says that an election is due: worth trying, if nobody leads. */
  hint(): void {
    this.#parts.standing.hint();
  }

  /** How many words of leaders came when their terms were over. */
  get lateWords(): number {
    return this.#parts.ballots.late;
  }

  notes(): readonly string[] {
    const { settings, ...parts } = this.#parts;
    return bullyNotes({ self: this.#o.identity.name, quorum: settings.quorum, ...parts });
  }

  protected async onStart(): Promise<void> {
    const { local, terms } = this.#o;
    const { belonging, membership, book, view, voter, settings, log, heartbeats, gossip } = this.#parts;
    await local.start();
    this.#stopping = new AbortController();
    belonging.begin();
    membership.begin();
    gossip.begin();
    book.open();
    view.clear();
    await voter.load((await terms.read(ROLE))?.epoch ?? 0);
    if (settings.quorum === "none") log.warn({}, SPLIT_BRAIN);
    heartbeats.start();
    await gossip.tryToVote();
    this.#join();
  }

  protected async onStop(): Promise<void> {
    const { watch, heartbeats, membership, view, voter } = this.#parts;
    this.#stopping.abort();
    watch.stop();
    await heartbeats.stop();
    await this.#joining;
    await membership.leave();
    view.clear();
    await voter.idle();
    await this.#o.local.stop();
  }

  #join(): void {
    const { joining, log } = this.#parts;
    const { signal } = this.#stopping;
    this.#joining = this.#joining
      .then(() => joining?.run(signal))
      .catch((error: unknown) => log.error({ err: error }, "joining failed; start this node again"));
  }
}
