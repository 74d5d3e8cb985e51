/** Opens the transport between the nodes of a cluster. It is not started, and has no handler (`serve`) yet. */

import { MeshTransport, type MeshOptions } from "./mesh/mesh-transport.ts";

export function openTransport(options: MeshOptions): MeshTransport {
  return new MeshTransport(options);
}
