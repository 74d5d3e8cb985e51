/** A cluster whose nodes are each on a host of their own, so that the network between them can fail. */

import { stringify } from "yaml";
import { NetHosts } from "./net-hosts.ts";
import type { Scope } from "./node-cleanup.ts";
import { allVote } from "./peer-failover.ts";
import { PeerCluster, type PeerClusterOptions, type WriteNodeFile } from "./peer-cluster.ts";

/** Fit to be used beyond one machine, and known to everybody who reads this. */
export const TEST_SECRET = "Qm7rX2vL9tZ4kP8wN3sB6yH1cF5jD0gA";

export const listedFile: WriteNodeFile = ({ name, names, url }) => {
  const nodes = Object.fromEntries(names.map((each) => [each, url(each)]));
  return { file: "baton.yaml", text: stringify({ name, nodes }) };
};

export interface HostCluster {
  readonly net: NetHosts;
  readonly cluster: PeerCluster;
}

/** All of them there, voting, and led by one. */
export async function startOnHosts(t: Scope, options: PeerClusterOptions = {}): Promise<HostCluster> {
  const names = options.names ?? ["node-a", "node-b", "node-c"];
  const net = NetHosts.open(t, names);
  const cluster = await PeerCluster.start(t, {
    file: listedFile,
    ...options,
    names,
    settings: { SECRET: TEST_SECRET, ...options.settings },
    url: (name, _seenBy, port) => `http://${net.address(name)}:${port}`,
    command: (name) => net.command(name),
  });
  await allVote(cluster);
  return { net, cluster };
}
