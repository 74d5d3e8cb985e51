/** The nodes whose votes count, and their addresses: a configured list, or the agreed peer set. */

import { hash } from "node:crypto";
import { BatonError } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import {
  entryOf,
  isMember,
  namesOf,
  removalOf,
  type PeerSet,
  type RemovedIncarnation,
  type SetNumber,
} from "../../core/leadership/peer-set.ts";
import type { NodeIdentity } from "../../core/node.ts";
import type { Voter } from "./election/voter.ts";

export type PeerSource =
  /** The same list on every node, with our own name in it. All of them count, also dead ones. */
  | { readonly kind: "static"; readonly nodes: Readonly<Record<string, string>> }
  /** Addresses of nodes to join through. None: this node founds the cluster, unless its file knows one. */
  | { readonly kind: "join"; readonly addresses: readonly string[] }
  /** Addresses that change, as those behind a DNS name. A majority of them that has met founds the cluster. */
  | {
      readonly kind: "discover";
      readonly resolve: () => Promise<readonly string[]>;
      /** How many are expected at least, however few the list shows at the start. */
      readonly expect?: number;
    };

interface Listed {
  readonly set: PeerSet | null;
  readonly names: readonly NodeName[];
  readonly others: readonly NodeName[];
}

export class PeerList {
  readonly #self: NodeName;
  readonly #voter: Voter;
  readonly #static: ReadonlyMap<NodeName, string> | null;
  /** Addresses that members reported since the set was agreed on: a restarted node may have moved. */
  readonly #moved = new Map<NodeName, string>();
  #list: Listed | null = null;
  /** Of the configured list, so that nodes with different lists are noticed; null where nodes join. */
  readonly hash: string | null;

  constructor(self: NodeName, source: PeerSource, voter: Voter) {
    this.#self = self;
    this.#voter = voter;
    this.#static =
      source.kind === "static" ? new Map(Object.entries(source.nodes) as [NodeName, string][]) : null;
    this.hash = this.#static && listHash(this.#static);
    if (this.#static && !this.#static.has(self)) {
      throw new BatonError(
        "BAD_CONFIG",
        `the list of nodes does not have this node's own name, ${self}; it has ${[...this.#static.keys()].join(", ") || "none"}`,
        { field: "nodes" },
      );
    }
  }

  /** Whether the members agree on the set, so that it can change; false for a configured list. */
  get agreed(): boolean {
    return this.#static === null;
  }

  get set(): PeerSet | null {
    return this.#static ? null : this.#voter.peers;
  }

  get number(): SetNumber | null {
    const set = this.set;
    return set && { epoch: set.epoch, count: set.count };
  }

  /** All nodes whose votes count, dead ones included: in the order of names, with our own; none while this node belongs to no cluster. */
  names(): readonly NodeName[] {
    return this.#listed().names;
  }

  others(): readonly NodeName[] {
    return this.#listed().others;
  }

  /** Cached until the set changes: every request that is passed on reads it. */
  #listed(): Listed {
    const { set } = this;
    if (this.#list?.set === set) return this.#list;
    const names = this.#static ? [...this.#static.keys()].sort() : set ? namesOf(set) : [];
    this.#list = { set, names, others: names.filter((name) => name !== this.#self) };
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

  /** Which membership of that node this is: another one after it was removed and has joined again. */
  entry(name: NodeName): string {
    return this.set ? entryOf(this.set, name) : "";
  }

  moved(name: NodeName, address: string): void {
    if (this.set?.members[name] === address) this.#moved.delete(name);
    else this.#moved.set(name, address);
  }

  /** Why an incarnation is not a member any more; null if it was not removed. */
  removal({ name, incarnation }: NodeIdentity): RemovedIncarnation["why"] | null {
    return this.set && !this.has(name) ? removalOf(this.set, name, incarnation) : null;
  }
}

function listHash(nodes: ReadonlyMap<string, string>): string {
  const lines = [...nodes].map(([name, url]) => `${name} ${url.replace(/\/$/, "")}`).sort();
  return hash("sha256", lines.join("\n")).slice(0, 16);
}
