/**
 * Whose votes count, and where they are reached: a list that was set, or the set that the members have agreed on.
 */

import { createHash } from "node:crypto";
import type { NodeName } from "../../core/ids.ts";
import {
  compareSets,
  isMember,
  namesOf,
  removalOf,
  type PeerSet,
  type RemovedLife,
  type SetNumber,
} from "../../core/peer-set.ts";
import type { NodeIdentity } from "../../core/node.ts";
import type { Voter } from "./voter.ts";

/** Where the members come from. */
export type PeerSource =
  /** The same list on every node, our own name in it. All of them count, also those that are dead. */
  | { readonly kind: "static"; readonly nodes: Readonly<Record<string, string>> }
  /** Addresses of nodes to join through. None: this node founds the cluster, unless its file knows one. */
  | { readonly kind: "join"; readonly addresses: readonly string[] }
  /** Addresses that change, as those behind a DNS name. Whoever is up first, with a majority of them, founds the cluster. */
  | {
      readonly kind: "discover";
      readonly resolve: () => Promise<readonly string[]>;
      /** How many are expected at least, however few the list shows at the start. */
      readonly expect?: number;
    };

export interface RosterOptions {
  readonly identity: NodeIdentity;
  readonly source: PeerSource;
  readonly voter: Voter;
  /** A set that is newer than ours may be taken over. */
  readonly onOffer: (set: PeerSet) => void;
}

interface Listed {
  readonly set: PeerSet | null;
  readonly names: readonly NodeName[];
  readonly others: readonly NodeName[];
}

export class Roster {
  readonly #o: RosterOptions;
  readonly #static: ReadonlyMap<NodeName, string> | null;
  /** Where members were heard from since they were noted: a restarted one may have moved. */
  readonly #moved = new Map<NodeName, string>();
  #list: Listed | null = null;
  /** Of the list, where it is a setting: nodes whose lists differ are found out by it. */
  readonly hash: string | null;

  constructor(options: RosterOptions) {
    this.#o = options;
    const { source } = options;
    this.#static =
      source.kind === "static" ? new Map(Object.entries(source.nodes) as [NodeName, string][]) : null;
    this.hash = this.#static && listHash(this.#static);
  }

  get agreed(): boolean {
    return this.#static === null;
  }

  get set(): PeerSet | null {
    return this.#static ? null : this.#o.voter.peers;
  }

  get number(): SetNumber | null {
    const set = this.set;
    return set && { epoch: set.epoch, count: set.count };
  }

  /** In the order of names, ourselves among them; empty while this node belongs to no cluster. */
  names(): readonly NodeName[] {
    return this.#listed().names;
  }

  others(): readonly NodeName[] {
    return this.#listed().others;
  }

  /** Kept until the set is another one: every request that is passed on asks for it. */
  #listed(): Listed {
    const { set } = this;
    if (this.#list?.set === set) return this.#list;
    const names = this.#static ? [...this.#static.keys()].sort() : set ? namesOf(set) : [];
    this.#list = { set, names, others: names.filter((name) => name !== this.#o.identity.name) };
    return this.#list;
  }

  has(name: string): boolean {
    if (this.#static) return this.#static.has(name as NodeName);
    return this.set !== null && isMember(this.set, name);
  }

  address(name: NodeName): string | null {
    if (!this.has(name)) return null;
    return this.#static?.get(name) ?? this.#moved.get(name) ?? this.set?.members[name] ?? null;
  }

  /** A member says where it is now. */
  moved(name: NodeName, address: string): void {
    if (this.set?.members[name] === address) this.#moved.delete(name);
    else this.#moved.set(name, address);
  }

  /** Why a life is no member, if it was sent away. */
  removal({ name, incarnation }: NodeIdentity): RemovedLife["why"] | null {
    return this.set && !this.has(name) ? removalOf(this.set, name, incarnation) : null;
  }

  offer(set: PeerSet): void {
    const ours = this.set;
    if (!this.agreed || (ours && ours.cluster === set.cluster && compareSets(set, ours) <= 0)) return;
    this.#o.onOffer(set);
  }
}

function listHash(nodes: ReadonlyMap<string, string>): string {
  const lines = [...nodes].map(([name, url]) => `${name} ${url.replace(/\/$/, "")}`).sort();
  return createHash("sha256").update(lines.join("\n")).digest("hex").slice(0, 16);
}
