import { Actor } from "../actor.ts";
import type { HttpSide } from "../http-side.ts";
import type { Generator, Press } from "../load.ts";
import { PeerNodes } from "../peer-nodes.ts";
import { cpuOf, press, pressRow, type Pressed, type Turn } from "../pressed.ts";
import {
  atLeast,
  atMost,
  besideRow,
  compareBy,
  interleave,
  type Bench,
  type Row,
  type Scenario,
} from "../scenario.ts";

const CONNECTIONS = 50;
const SHARE_MIN = 0.5;
const P50_TIMES_MAX = 2.2;
const PER_CORE_SHARE_MIN = 0.8;
/**
 * For each node that is pressed, before anything counts: a request costs three times as much among the first thousand as it does
 * when all code is compiled, and three nodes that share a load get there later than one.
 */
const WARM_REQUESTS = 20_000;

export const peers: Scenario = {
  name: "peers",
  about:
    "a cluster of peers on 50 connections: what is passed on to another node beside what is answered where it arrives, and three nodes beside one",
  only: "sqlite",
  async run(bench) {
    const load = await Actor.open<Generator>("./load.ts");
    try {
      return [...(await oneHop(bench, load)), ...(await threeNodes(bench, load))];
    } finally {
      await load.stop();
    }
  },
};

/** Jobs of one and the same node, asked for and submitted there, and through another one that runs none of its own. */
async function oneHop(bench: Bench, load: Actor<Generator>): Promise<Row[]> {
  const cluster = await PeerNodes.open(bench.engine, {
    ingress: { works: false, settings: { "placement.strategy": "per-node" } },
    owner: { settings: { "placement.strategy": "local" } },
  });
  try {
    const [ingress, owner] = cluster.urls as [string, string];
    const id = await submit(owner);
    if (!(await submit(ingress)).startsWith("owner-")) throw new Error("the ingress kept a job");
    const { nodes: servers } = cluster;
    const read = { connections: CONNECTIONS, get: `/jobs/${id}`, servers };
    const turns = await takeTurns(bench, load, {
      readHere: { ...read, url: owner },
      readThere: { ...read, url: ingress },
      submitHere: { url: owner, connections: CONNECTIONS, servers },
      submitThere: { url: ingress, connections: CONNECTIONS, servers },
      loneHere: { ...read, url: owner, connections: 1 },
      loneThere: { ...read, url: ingress, connections: 1 },
    });
    const { loneThere, loneHere } = turns;
    return [
      ...hopRows("GET /jobs/{id} of another node", turns.readThere, turns.readHere),
      ...hopRows("POST /jobs, placed on another node", turns.submitThere, turns.submitHere),
      besideRow("GET of another node, one connection, p50", "ms", compareBy(loneThere, loneHere, p50Of), {
        cpuUs: cpuOf(loneThere, loneHere),
      }),
    ];
  } finally {
    await cluster.stop();
  }
}

/** Each of three takes submits and places two of three of them on the others; beside them one that is alone. */
async function threeNodes(bench: Bench, load: Actor<Generator>): Promise<Row[]> {
  const each = { settings: { "placement.strategy": "per-node" } };
  const place = await bench.engine.place("alone");
  const alone = await Actor.open<HttpSide>("./baton-server.ts", { ...place, run: false });
  const cluster = await PeerNodes.open(bench.engine, { ada: each, bob: each, cyd: each });
  try {
    const { one, three } = await takeTurns(bench, load, {
      one: { url: await alone.call("reset"), connections: CONNECTIONS, servers: [alone] },
      three: { url: cluster.urls, connections: 3 * CONNECTIONS, servers: cluster.nodes },
    });
    const perCore = compareBy(three, one, ({ cpuUs }) => 1e6 / cpuUs);
    return [
      besideRow("POST /jobs, three nodes beside one", "req/core/s", perCore, {
        cpuUs: cpuOf(three, one),
        goal: atLeast(PER_CORE_SHARE_MIN),
      }),
      besideRow("  all three together beside one", "req/s", compareBy(three, one, rateOf)),
    ];
  } finally {
    await Promise.all([cluster.stop(), alone.stop()]);
  }
}

async function takeTurns<Name extends string>(
  { quick, rounds, say }: Bench,
  load: Actor<Generator>,
  sides: Readonly<Record<Name, Pressed>>,
): Promise<Record<Name, Turn[]>> {
  for (const { servers: _, ...what } of Object.values<Pressed>(sides))
    await warmUp(load, what, quick ? 1 : WARM_REQUESTS);
  const some = { rounds: Math.min(rounds, quick ? 2 : 9), say };
  return interleave(some, sides, (side) => press(load, side));
}

async function warmUp(load: Actor<Generator>, what: Omit<Press, "seconds">, each: number): Promise<void> {
  // A single caller runs what the fifty have warmed.
  if (what.connections === 1) return;
  for (let left = each * [what.url].flat().length; left > 0;)
    left -= (await load.call("press", { ...what, seconds: 2 })).requests;
}

function hopRows(figure: string, there: readonly Turn[], here: readonly Turn[]): Row[] {
  return [
    pressRow(figure, "req/s", there, here, { goal: atLeast(SHARE_MIN) }),
    besideRow("  p50 of that", "ms", compareBy(there, here, p50Of), { goal: atMost(P50_TIMES_MAX) }),
  ];
}

const rateOf = ({ perSecond }: Turn): number => perSecond;
const p50Of = ({ p50Ms }: Turn): number => p50Ms;

async function submit(url: string): Promise<string> {
  const response = await fetch(`${url}/jobs`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ task: "bench" }),
  });
  if (!response.ok) throw new Error(`a submit ended with ${response.status}: ${await response.text()}`);
  return ((await response.json()) as { job_id: string }).job_id;
}
