/** The link to one url: dials on demand, one attempt at a time, and remembers which node answered there last. */

import type { NodeName } from "../../core/ids.ts";
import type { MeshConnection } from "./mesh-connection.ts";
import type { Dialled } from "./dial.ts";

export type Reached =
  | { readonly state: "open"; readonly connection: MeshConnection }
  | Exclude<Dialled, { state: "open" }>;

export class PeerLink {
  readonly url: string;
  readonly #dial: (to: NodeName | null) => Promise<Reached>;
  #dialling: { readonly to: NodeName | null; readonly reached: Promise<Reached> } | null = null;
  /** The node that answered there last. */
  name: NodeName | null = null;

  constructor(url: string, dial: (to: NodeName | null) => Promise<Reached>) {
    this.url = url;
    this.#dial = dial;
  }

  /** Concurrent callers share one attempt, unless they mean different nodes. */
  async reach(to: NodeName | null): Promise<Reached> {
    const dialling = this.#dialling;
    if (dialling && (dialling.to === to || to === null)) return dialling.reached;
    const mine = { to, reached: this.#dial(to) };
    this.#dialling = mine;
    try {
      const result = await mine.reached;
      if (result.state === "open") this.name = result.connection.peer.name;
      return result;
    } finally {
      if (this.#dialling === mine) this.#dialling = null;
    }
  }
}
