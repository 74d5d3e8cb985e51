/** Opens the transport between the nodes of a cluster. It is not started, and has no handler (`serve`) yet. */

import { MeshTransport, type MeshPlatform } from "./mesh/mesh-transport.ts";
import type { NodeTransport } from "./transport.ts";

export function openTransport(platform: MeshPlatform, secrets: readonly string[]): NodeTransport {
  return new MeshTransport(platform, secrets);
}
