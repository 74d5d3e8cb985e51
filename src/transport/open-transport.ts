/** The transport between the nodes of a cluster: the mesh, with signed HTTP where a peer has none. */

import type { NodeIdentity } from "../core/node.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import { Authenticator } from "./signing/authenticator.ts";
import { clusterKeys } from "./signing/cluster-keys.ts";
import { HttpTransport } from "./http/http-transport.ts";
import { MeshTransport } from "./mesh/mesh-transport.ts";
import { SignedTransport } from "./signing/signed-transport.ts";

export interface PeersOptions {
  readonly self: NodeIdentity;
  /** The first one signs, and a second one is accepted too. */
  readonly secrets: readonly string[];
  /** How far the clocks of two nodes may be apart. */
  readonly skewMs?: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

export interface OpenPeers {
  /** Not started, and without a handler (`serve`). Its `attach` takes the connections of peers on the node's HTTP server. */
  readonly transport: MeshTransport;
  /** For calls of peers that come as plain HTTP requests. */
  readonly authenticator: Authenticator;
}

export function openPeers(options: PeersOptions): OpenPeers {
  const { self, clock, random, log } = options;
  const keys = clusterKeys(options.secrets);
  const authenticator = new Authenticator({ keys, self: self.name, clock, skewMs: options.skewMs });
  const fallback = new SignedTransport({ inner: new HttpTransport({ clock }), keys, self, clock, random });
  const transport = new MeshTransport({ self, keys, authenticator, fallback, clock, random, log });
  return { transport, authenticator };
}
