/** The connection to use for each node: one per pair of nodes, whichever dialled; for a moment there may be two. */

import type { NodeName } from "../../core/ids.ts";
import type { MeshConnection } from "./mesh-connection.ts";

export class ConnectionTable {
  readonly #self: NodeName;
  readonly #byName = new Map<NodeName, MeshConnection>();
  readonly #all = new Set<MeshConnection>();

  constructor(self: NodeName) {
    this.#self = self;
  }

  get size(): number {
    return this.#all.size;
  }

  all(): MeshConnection[] {
    return [...this.#all];
  }

  get(name: NodeName): MeshConnection | null {
    const connection = this.#byName.get(name);
    return connection?.usable ? connection : null;
  }

  /** It counts at once, and is used when it is proven. */
  add(connection: MeshConnection): void {
    this.#all.add(connection);
  }

  remove(connection: MeshConnection): void {
    this.#all.delete(connection);
    if (this.#byName.get(connection.peer.name) === connection) this.#byName.delete(connection.peer.name);
  }

  /**
   * Two nodes that dial each other at the same moment must drop the same one of the two, so that of the smaller name is
   * kept; of two by the same dialler the later one, because a node that dials again has lost the first.
   */
  prove(connection: MeshConnection): void {
    const { peer } = connection;
    const other = this.#byName.get(peer.name);
    if (!other || other === connection || !other.usable) {
      this.#byName.set(peer.name, connection);
      return;
    }
    if (other.peer.incarnation !== peer.incarnation) {
      this.#byName.set(peer.name, connection);
      return other.destroy("the peer has started anew");
    }
    const kept =
      other.dialled === connection.dialled || connection.dialled === this.#self < peer.name
        ? connection
        : other;
    this.#byName.set(peer.name, kept);
    (kept === connection ? other : connection).retire();
  }
}
