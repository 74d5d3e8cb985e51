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
  // Some kinds only, in each run others: all of them always would hide what one alone does.
  const kinds = FAULTS.filter(() => world.chance() < 0.7);
  if (world.joined) kinds.push(remove, remove, remove);
  while (timeline.monotonic() < until) {
    await timeline.sleep(world.between(300, 4_000));
    const node = leaderOf(world) ?? world.pick(world.nodes)!;
    const fault = world.pick(kinds)!;
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

/** Dies in the middle of what it does, and not between two things. */
const killAtStep: Fault = async (world, node) => {
  if (!node.up) return;
  node.dieAfter(1 + Math.floor(world.between(0, 30)));
  for (let waitedMs = 0; node.life && waitedMs < 3_000; waitedMs += 50) await world.timeline.sleep(50);
  if (node.life) return node.dieAfter(Infinity);
  await world.timeline.sleep(world.between(50, 4_000));
  await restart(world, node);
};

/** The whole machine: there is no operating system left that refuses connections. */
const loseMachine: Fault = async (world, node) => {
  if (!node.life) return;
  const links = linksOf(world, node);
  world.history.add(`the machine of ${node.name} fails`);
  for (const [from, to] of links) world.network.setLink(from, to, { state: "silent" });
  await kill(world, node);
  for (const [from, to] of links) world.network.setLink(from, to, { state: "open" });
};

/** The last messages of a leader arrive when its successor leads. */
const delayLastMessages: Fault = async (world) => {
  const leader = leading(world);
  if (!leader || world.database) return;
  world.history.counts.lateMessages++;
  world.history.add(`the last messages of ${leader.name} are late`);
  const links = linksOf(world, leader).filter(([from]) => from === leader.url);
  for (const [from, to] of links) world.network.setLink(from, to, { delayMs: 600, jitterMs: 2_000 });
  await world.timeline.sleep(world.between(100, 1_000));
  const over = kill(world, leader);
  for (const [from, to] of links) world.network.setLink(from, to, usualDelay(world));
  await over;
};

/** A candidate gets its promise and is not heard any more; who promised dies at once and is back before the lease ends. */
const killVoter: Fault = async (world) => {
  const leader = leading(world);
  if (!leader || world.database || world.nodes.some(({ onVote }) => onVote)) return;
  const { timeline, network, history } = world;
  const voted = Promise.withResolvers<readonly [SimNode, SimNode] | null>();
  for (const voter of world.nodes)
    voter.onVote = (text) => {
      const { ballot } = JSON.parse(text) as { ballot: { to: { name: string } | null; released: boolean } };
      const candidate = world.nodes.find(({ name }) => name === ballot.to?.name);
      if (candidate && ![voter, leader].includes(candidate)) voted.resolve([voter, candidate]);
    };
  timeline.after(4_000, () => voted.resolve(null));
  history.counts.kills++;
  history.add(`kill ${leader.name} for an election`);
  leader.kill();
  const found = await voted.promise;
  for (const voter of world.nodes) voter.onVote = null;
  if (found) {
    const [voter, candidate] = found;
    history.counts.forgottenVotes++;
    history.add(`${voter.name} dies after its promise to ${candidate.name}`);
    const links = linksOf(world, candidate).filter(([from]) => from === candidate.url);
    for (const [from, to] of links) network.setLink(from, to, { state: "silent" });
    await timeline.sleep(5);
    voter.kill();
    await timeline.sleep(50);
    await Promise.all([restart(world, voter), restart(world, leader)]);
    await timeline.sleep(world.between(2_000, 5_000));
    for (const [from, to] of links) network.setLink(from, to, { state: "open" });
  }
  await restart(world, leader);
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
  const links = linksOf(world, node).filter((link) => link.includes(other));
  for (const [from, to] of links)
    world.network.setLink(from, to, { delayMs: 100, jitterMs: 900, duplicates: 0.2 });
  await world.timeline.sleep(world.between(1_000, 8_000));
  for (const [from, to] of links) world.network.setLink(from, to, { ...usualDelay(world), duplicates: 0 });
};

/** Of one node in a run: more could be all copies of what a majority has agreed on. */
const loseDisk: Fault = async (world, node) => {
  const { history } = world;
  // The founder of a cluster would found another one.
  const keeps = world.database || world.joined;
  if (keeps || history.counts.diskLosses > 0 || world.chance() < 0.5) return kill(world, node);
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
  node.mayDrainLate ||= asked === null;
  await world.timeline.sleep(world.between(500, 8_000));
  await resumeWork(world, node);
};

/** An operator takes a node out of the cluster and lets it join again, also several at a time. */
const remove: Fault = async (world, node) => {
  if (!node.up) return kill(world, node);
  const asked = await world.call("remove_node", { params: { name: node.name } });
  if (asked && asked.status < 300) world.history.counts.removals++;
  await world.timeline.sleep(world.between(100, 5_000));
  restartRemoved(world);
};

/** A node that was removed joins again when it is started again. */
export function restartRemoved(world: World): void {
  const members = membersOf(world);
  if (members.size === 0 || !world.joined) return;
  for (const node of world.nodes) {
    if (!node.up || members.has(node.name)) continue;
    world.history.add(`start ${node.name} again: it is not a member`);
    node.kill();
    void node.start();
  }
}

/** A request to drain that was not answered may be carried out after the node was told to go on. The operator sees it, and repeats that. */
export async function resumeLateDrains(world: World): Promise<void> {
  for (const { name, up, life, mayDrainLate } of world.nodes) {
    if (!mayDrainLate || !up) continue;
    const own = life!.node.services.membership.nodes().find((node) => node.name === name);
    if (own?.status === "draining") await world.call("resume_node", { params: { name } });
  }
}

/** As the leader has them; empty if there is none. */
function membersOf(world: World): ReadonlySet<string> {
  const leader = leading(world);
  return new Set(leader?.life!.node.services.membership.nodes().map(({ name }) => name));
}

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
  return world.chance() > 0.33 ? undefined : leading(world);
}

function leading({ nodes }: World): SimNode | undefined {
  return nodes.find((node) => node.up && node.life!.node.services.leadership.held() !== null);
}

/** Both directions of each. */
function linksOf(world: World, { url }: SimNode): readonly (readonly [from: string, to: string])[] {
  const others = endsOf(world).filter((end) => end !== url);
  return others.flatMap((other) => [[url, other] as const, [other, url] as const]);
}

function usualDelay({ network: { usual } }: World): { delayMs: number; jitterMs: number } {
  return { delayMs: usual.delayMs, jitterMs: usual.jitterMs };
}

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
  killAtStep,
  killAtStep,
  killVoter,
  loseMachine,
  delayLastMessages,
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
