/** The link to one url: dials on demand, one attempt at a time, and remembers what is known about the server there. */

import type { NodeName } from "../../core/ids.ts";
import type { Clock } from "../../platform/clock.ts";
import type { MeshConnection } from "./mesh-connection.ts";
import type { Dialled } from "./dial.ts";

export type Reached =
  | { readonly state: "open"; readonly connection: MeshConnection }
  | Exclude<Dialled, { state: "open" }>;

export interface PeerLinkOptions {
  readonly url: string;
  readonly clock: Clock;
  /** How long a peer without a mesh is called over HTTP before the mesh is tried again. */
  readonly plainMs: number;
  readonly dial: (link: PeerLink, to: NodeName | null) => Promise<Reached>;
  readonly onPlain: (link: PeerLink, reason: string) => void;
}

export class PeerLink {
  readonly url: string;
  readonly #o: PeerLinkOptions;
  #dialling: { readonly to: NodeName | null; readonly reached: Promise<Reached> } | null = null;
  #plainUntil = Number.NEGATIVE_INFINITY;
  #toldPlain = false;
  /** Who answered there last. */
  name: NodeName | null = null;

  constructor(options: PeerLinkOptions) {
    this.#o = options;
    this.url = options.url;
  }

  /** Whether it was found lately that there is no mesh. */
  get plain(): boolean {
    return this.#o.clock.monotonic() < this.#plainUntil;
  }

  /** Those who need it at the same time share one attempt, unless they mean different nodes. */
  async reach(to: NodeName | null): Promise<Reached> {
    const dialling = this.#dialling;
    if (dialling && (dialling.to === to || to === null)) return dialling.reached;
    const reached = this.#o.dial(this, to).then((result) => this.#note(result));
    const mine = { to, reached };
    this.#dialling = mine;
    try {
      return await reached;
    } finally {
      if (this.#dialling === mine) this.#dialling = null;
    }
  }

  #note(result: Reached): Reached {
    if (result.state === "open") {
      this.name = result.connection.peer.name;
      this.#toldPlain = false;
      this.#plainUntil = Number.NEGATIVE_INFINITY;
    }
    if (result.state === "plain") {
      this.#plainUntil = this.#o.clock.monotonic() + this.#o.plainMs;
      if (!this.#toldPlain) this.#o.onPlain(this, result.reason);
      this.#toldPlain = true;
    }
    return result;
  }
}
