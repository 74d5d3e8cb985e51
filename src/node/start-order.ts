/**
 * The order in which the services of a node start; they stop in reverse. It is the same for all fabrics, and a service that the fabric does
 * not have is left out. The store is opened before all of them, because the layers are built from it.
 */

import type { Service } from "../platform/service.ts";
import type { Composed } from "./compose.ts";
import { atStop } from "./service-list.ts";

type Ordered = readonly (Service | null | undefined)[];

/** Started when the node starts. */
export function baseServices({ p, b, e, w, x }: Composed): Ordered {
  return [
    ...x.records,
    p.load,
    // Read before a peer can ask for a job back.
    w.peers?.retractionFile,
    b.peers?.transport,
    w.peers?.position,
    // Peers reach each other through their listeners, so it opens before the coordination.
    x.http,
    atStop(() => p.events.emit("node.status", "left")),
    b.coordination,
    b.reach,
    b.channels,
    w.followers,
    w.threads,
    w.push?.sink,
    e,
    w.controller,
    x.joinServer,
    w.peers?.retractions,
  ];
}

/** Started once the cluster has formed, and again when a drained node is resumed. */
export function workingServices({ w, d }: Composed): Ordered {
  return [w.push?.owner, w.push?.inbox, w.worker, d];
}
