/**
 * Injects faults into a simulated world, one at a time or several at once, as the seed decides. Never so many that a
 * majority of disks is lost; everything else may happen to any number of nodes.
 */

import type { SimNode } from "./node.ts";
import { DATABASE_URL } from "./shared.ts";
import type { World } from "./world.ts";

type Fault = (world: World, node: SimNode) => Promise<void> | void;

export async function injectFaults(world: World, ms: number): Promise<void> {
  const { timeline } = world;
  const until = timeline.monotonic() + ms;
  const ending: Promise<void>[] = [];
  while (timeline.monotonic() < until) {
    await timeline.sleep(world.between(300, 4_000));
    const node = leaderOf(world) ?? world.pick(world.nodes)!;
    const fault = world.pick(FAULTS)!;
    const over = fault(world, node);
    if (over) ending.push(over);
  }
  await Promise.all(ending);
}

const kill: Fault = async (world, node) => {
  if (!node.life) return;
  world.history.counts.kills++;
  world.history.add(`kill ${node.name}`);
  node.kill();
  await world.timeline.sleep(world.between(100, 8_000));
  await restart(world, node);
};

const pause: Fault = async (world, node) => {
  const { life } = node;
  if (!life || life.clock.state !== "runs") return;
  world.history.counts.pauses++;
  world.history.add(`pause ${node.name}`);
  life.clock.pause();
  await world.timeline.sleep(world.between(200, 9_000));
  life.clock.resume();
};

/** The network in two parts; or, in one direction only, one node that is not heard, or hears nothing. */
const partition: Fault = async (world, node) => {
  const { network, nodes, history } = world;
  const ends = endsOf(world);
  const others = nodes.filter((other) => other !== node);
  const how = world.pick(["part", "deaf", "mute"] as const)!;
  const part = how === "part" ? [node, ...others.filter(() => world.chance() < 0.3)] : [node];
  history.counts.partitions++;
  history.add(`${how} ${part.map(({ name }) => name).join(" ")}`);
  const links = part.flatMap((inside) =>
    ends
      .filter((outside) => !part.some(({ url }) => url === outside))
      .flatMap((outside) => [
        ...(how === "deaf" ? [] : [[inside.url, outside] as const]),
        ...(how === "mute" ? [] : [[outside, inside.url] as const]),
      ]),
  );
  for (const [from, to] of links) network.setLink(from, to, { state: "silent" });
  await world.timeline.sleep(world.between(500, 8_000));
  for (const [from, to] of links) network.setLink(from, to, { state: "open" });
};

/** Requests arrive and are executed; some replies do not come back. */
const loseReplies: Fault = async (world, node) => {
  const others = endsOf(world).filter((end) => end !== node.url);
  // The database answers the node; a peer is answered by it.
  const links = others.map((end) =>
    world.database ? ([end, node.url] as const) : ([node.url, end] as const),
  );
  world.history.add(`replies of ${node.name} are lost`);
  for (const [from, to] of links) world.network.setLink(from, to, { loss: 0.5 });
  await world.timeline.sleep(world.between(500, 6_000));
  for (const [from, to] of links) world.network.setLink(from, to, { loss: 0 });
};

const slow: Fault = async (world, node) => {
  const other = world.pick(endsOf(world).filter((end) => end !== node.url))!;
  world.history.counts.slowLinks++;
  world.history.add(`slow ${node.url} ${other}`);
  const before = world.network.usual;
  for (const [from, to] of [
    [node.url, other],
    [other, node.url],
  ] as const)
    world.network.setLink(from, to, { delayMs: 100, jitterMs: 900 });
  await world.timeline.sleep(world.between(1_000, 8_000));
  for (const [from, to] of [
    [node.url, other],
    [other, node.url],
  ] as const)
    world.network.setLink(from, to, { delayMs: before.delayMs, jitterMs: before.jitterMs });
};

/** Of one node in a run: more could be all copies of what a majority has agreed on. */
const loseDisk: Fault = async (world, node) => {
  const { history } = world;
  if (world.database || history.counts.diskLosses > 0 || world.chance() < 0.5) return kill(world, node);
  history.counts.diskLosses++;
  history.counts.kills++;
  history.add(`${node.name} loses its disk`);
  node.kill();
  node.disk.lose();
  const acknowledged = new Set(world.workload.acknowledged.map(({ id }) => id));
  history.lost(node.name, world.nodes.length, acknowledged);
  await world.timeline.sleep(world.between(100, 8_000));
  await restart(world, node);
};

const drain: Fault = async (world, node) => {
  const asked = await world.call("drain_node", { params: { name: node.name } });
  if (asked && asked.status < 300) world.history.counts.drains++;
  await world.timeline.sleep(world.between(500, 8_000));
  await resumeWork(world, node);
};

/** SIGTERM, and a start. */
const roll: Fault = async (world, node) => {
  if (!node.up) return;
  world.history.add(`stop ${node.name}`);
  await Promise.race([node.stop(), world.timeline.sleep(15_000)]);
  node.kill();
  await restart(world, node);
};

/** Every third fault meets the leader, if there is one: there is more to break. */
function leaderOf(world: World): SimNode | undefined {
  if (world.chance() > 0.33) return undefined;
  return world.nodes.find((node) => node.up && node.life!.node.services.leadership.held() !== null);
}

/** Whatever nodes have links to. */
function endsOf({ database, nodes }: World): readonly string[] {
  return database ? [DATABASE_URL] : nodes.map(({ url }) => url);
}

async function restart(world: World, node: SimNode): Promise<void> {
  if (node.life) return;
  world.history.counts.restarts++;
  await node.start();
}

/** Until it works: a node that drains for ever would be the operator's fault. */
async function resumeWork(world: World, node: SimNode): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const asked = await world.call("resume_node", { params: { name: node.name } });
    if (asked && asked.status < 300) return;
    await world.timeline.sleep(1_000);
  }
}

const FAULTS: readonly Fault[] = [
  kill,
  kill,
  pause,
  pause,
  partition,
  partition,
  loseReplies,
  slow,
  loseDisk,
  drain,
  roll,
];
