/**
 * A cluster without other infrastructure at its default times, and how long it is without a leader. Names decide there, so the
 * same is done beside five nodes that would all go before those that live, and are dead: two refuse connections, three take them
 * and say nothing.
 */

import { hangingAddress } from "../test/support/hanging-address.ts";
import { listedFile } from "../test/support/host-cluster.ts";
import { PeerCluster } from "../test/support/peer-cluster.ts";
import { allVote, failover, killLeader } from "../test/support/peer-failover.ts";
import { repeat, type Failover, type FailoverEvent, type FailoverOptions } from "./failover-event.ts";

const THREE = ["n1", "n2", "n3"];
/** With the dead they are thirteen, of which seven are a majority: one of the eight may die. */
const EIGHT = ["n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"];
const REFUSING = ["z1", "z2"];
const SILENT = ["z3", "z4", "z5"];
const TARGET = "p99 < 2,000 ms";

export const peersFailover: Failover = async (options) => {
  const { kills, stops, pauses } = options;
  const three = await open(options, THREE);
  const events: FailoverEvent[] = [
    {
      what: "peers, kill -9 of the leader: another leads",
      tookMs: await repeat(kills, "kill", options, () => kill(three)),
      target: TARGET,
    },
    {
      what: "peers, SIGTERM of the leader: another leads",
      tookMs: await repeat(stops, "stop", options, () => stop(three)),
    },
    {
      what: "peers, SIGSTOP of the leader: another leads",
      tookMs: await repeat(pauses, "pause", options, () => pause(three)),
      target: "< 5,500 ms (lease 5 s)",
    },
  ];
  await end(three);
  for (const dead of [[], [...REFUSING, ...SILENT]]) {
    const eight = await open(options, EIGHT, dead);
    events.push({
      what: `peers, kill -9, ${dead.length === 0 ? "eight nodes" : "eight and five dead higher ones"}`,
      tookMs: await repeat(kills, "kill", options, () => kill(eight)),
      target: TARGET,
    });
    await end(eight);
  }
  return events;
};

async function open(
  { scope, say }: FailoverOptions,
  living: readonly string[],
  dead: readonly string[] = [],
): Promise<PeerCluster> {
  say(`${living.length} peers start${dead.length > 0 ? `, ${dead.length} more are listed and dead` : ""} …`);
  const silent = new Map<string, string>();
  for (const name of dead.filter((each) => SILENT.includes(each)))
    silent.set(name, await hangingAddress(scope));
  const cluster = await PeerCluster.open(scope, {
    names: [...living, ...dead],
    file: listedFile,
    settings: { LOG__LEVEL: "error" },
    url: (name, _seenBy, port) => silent.get(name) ?? `http://127.0.0.1:${port}`,
  });
  // One after the other: eight at once would keep a small machine busy for longer than a node may take to start.
  for (const name of living) await cluster.start(name);
  await cluster.gathered();
  await allVote(cluster);
  return cluster;
}

async function kill(cluster: PeerCluster): Promise<number> {
  const { name, tookMs } = await killLeader(cluster);
  await cluster.restart(name);
  return tookMs;
}

async function stop(cluster: PeerCluster): Promise<number> {
  const { name, node, tookMs } = await failover(cluster, (each) => each.signal("SIGTERM"));
  await node.exited;
  cluster.nodes.delete(name);
  await cluster.restart(name);
  return tookMs;
}

async function pause(cluster: PeerCluster): Promise<number> {
  const { node, tookMs } = await failover(cluster, (each) => each.signal("SIGSTOP"));
  node.signal("SIGCONT");
  await cluster.gathered();
  return tookMs;
}

async function end(cluster: PeerCluster): Promise<void> {
  await Promise.all([...cluster.nodes.keys()].map((name) => cluster.kill(name)));
}
