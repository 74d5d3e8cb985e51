/** The backends of a cluster of peers: the transport between the nodes, and their coordination. */

import { agreedToken } from "../access/token-service.ts";
import { isEverywhere, parseAddress } from "../config/values/address.ts";
import { discoverNodes, parseDiscovery } from "../config/values/node-map.ts";
import { openClusterSecret } from "../config/secrets/cluster-secret.ts";
import type { Settings } from "../config/settings.ts";
import { openPeers, type PeerSource } from "../peers/open-peers.ts";
import { PeerClient } from "../peers/rpc/peer-rpc.ts";
import type { NodeInfo, OwnInfo } from "../core/node.ts";
import type { TermStore } from "../store/store.ts";
import type { Peers } from "../transport/hop-headers.ts";
import { openTransport } from "../transport/open-transport.ts";
import type { GivenFabric } from "./node-options.ts";
import type { NodePlatform } from "./platform.ts";

export type PeerBackend = ReturnType<typeof peerBackend>;

export function peerBackend(p: NodePlatform, terms: TermStore, given?: GivenFabric["network"]) {
  const { settings, info, state } = p;
  const secret = openClusterSecret(settings)!;
  const transport = given?.transport ?? openTransport(p, secret.secrets);
  if (given) state.publish({ url: () => given.url });
  const coordination = openPeers(p, {
    info,
    manager: () => managerAddress(settings, info()),
    transport,
    ...(given && { probe: given.probe }),
    watchPeer: (address, signal, name) => transport.watch(address, signal, name),
    dir: settings.data,
    terms,
    source: peerSource(settings, () => info().httpPort ?? settings.http.port),
    settings: {
      quorum: settings.cluster.quorum,
      order: settings.cluster.order,
      heartbeatMs: settings.peers.healthIntervalMs,
      heartbeatTimeoutMs: settings.peers.heartbeatTimeoutMs,
      electionTimeoutMs: settings.peers.electionTimeoutMs,
      forgetAfterMs: settings.peers.forgetAfterMs,
      deadAfterMs: settings.node.deadAfterMs,
      leaseMs: settings.leader.leaseMs,
      joinRetryMs: 250,
      joinRetryMsMax: 10_000,
    },
  });
  const peers: Peers = {
    requestTimeoutMs: settings.peers.requestTimeoutMs,
    configHash: () => coordination.peers.hash ?? "",
    agreed: () => coordination.agreed,
    call: (url, request, rest) => transport.call(url, request, rest),
    stream: (url, request, rest) => transport.stream(url, request, rest),
  };
  return {
    transport,
    coordination,
    peers,
    client: new PeerClient(transport.call.bind(transport)),
    nodes: (): readonly NodeInfo[] => coordination.membership.nodes(),
    /** What all nodes derive from their secret; null where the secret is public. */
    firstToken: secret.from === "nothing" ? null : agreedToken(secret.secrets[0]!),
    warnings: secret.warnings,
  };
}

function peerSource(settings: Settings, ownPort: () => number): PeerSource {
  const { nodes, join: addresses, discover, cluster } = settings;
  if (Object.keys(nodes).length > 0) return { kind: "static", nodes };
  const discovery = discover === "" ? null : parseDiscovery(discover);
  if (!discovery) return { kind: "join", addresses: addresses.map((address) => `http://${address}`) };
  const resolve = () => discoverNodes(discovery, ownPort());
  return { kind: "discover", resolve, expect: cluster.minimumNodes };
}

/** As others reach it: of one that listens everywhere, at the address of the node. */
function managerAddress({ manager }: Settings, { address }: Pick<OwnInfo, "address">): string | null {
  const own = parseAddress(manager.addr);
  if (!own || !isEverywhere(own.host)) return own && manager.addr;
  return address && `${address.includes(":") ? `[${address}]` : address}:${own.port}`;
}
