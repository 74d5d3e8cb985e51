import { Actor } from "../actor.ts";
import type { HttpSide } from "../http-side.ts";
import type { Generator, Load, Press } from "../load.ts";
import { PeerNodes } from "../peer-nodes.ts";
import { atLeast, atMost, compare, type Bench, type Row, type Scenario } from "../scenario.ts";
import { median } from "../statistics.ts";

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

/** What one turn gave: the load generator's view, and the CPU time of all nodes for each request. */
type Turn = Load & { readonly cpuUs: number };
interface Side {
  readonly press: Omit<Press, "seconds">;
  readonly meter: Pick<PeerNodes, "startMeter" | "readMeter">;
}

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
    const side = (url: string, connections: number, get?: string): Side => {
      return { press: { url, connections, ...(get && { get }) }, meter: cluster };
    };
    const turns = await takeTurns(bench, load, {
      readHere: side(owner, CONNECTIONS, `/jobs/${id}`),
      readThere: side(ingress, CONNECTIONS, `/jobs/${id}`),
      submitHere: side(owner, CONNECTIONS),
      submitThere: side(ingress, CONNECTIONS),
      loneHere: side(owner, 1, `/jobs/${id}`),
      loneThere: side(ingress, 1, `/jobs/${id}`),
    });
    const p50 = compareBy(turns.loneThere, turns.loneHere, ({ p50Ms }) => p50Ms);
    return [
      ...hopRows("GET /jobs/{id} of another node", turns.readThere, turns.readHere),
      ...hopRows("POST /jobs, placed on another node", turns.submitThere, turns.submitHere),
      {
        figure: "GET of another node, one connection, p50",
        unit: "ms",
        ...p50,
        cpuUs: cpu(turns.loneThere, turns.loneHere),
        target: null,
      },
    ];
  } finally {
    await cluster.stop();
  }
}

/** Each of three takes submits and places two of three of them on the others; beside them one that is alone. */
async function threeNodes(bench: Bench, load: Actor<Generator>): Promise<Row[]> {
  const settings = { "placement.strategy": "per-node" };
  const alone = await Actor.open<HttpSide>("./baton-server.ts", {
    ...(await bench.engine.place("alone")),
    run: false,
  });
  const cluster = await PeerNodes.open(bench.engine, {
    ada: { settings },
    bob: { settings },
    cyd: { settings },
  });
  try {
    const meter = {
      startMeter: () => alone.call("startMeter"),
      readMeter: () => alone.call("readMeter"),
    };
    const turns = await takeTurns(bench, load, {
      one: { press: { url: await alone.call("reset"), connections: CONNECTIONS }, meter },
      three: { press: { url: cluster.urls, connections: 3 * CONNECTIONS }, meter: cluster },
    });
    const perCore = compareBy(turns.three, turns.one, ({ cpuUs }) => 1e6 / cpuUs);
    return [
      {
        figure: "POST /jobs, three nodes beside one",
        unit: "req/core/s",
        ...perCore,
        cpuUs: cpu(turns.three, turns.one),
        target: atLeast(PER_CORE_SHARE_MIN, perCore.ratio),
      },
      {
        figure: "  all three together beside one",
        unit: "req/s",
        ...compareBy(turns.three, turns.one, ({ perSecond }) => perSecond),
        target: null,
      },
    ];
  } finally {
    await Promise.all([cluster.stop(), alone.stop()]);
  }
}

async function takeTurns<Name extends string>(
  bench: Bench,
  load: Actor<Generator>,
  sides: Readonly<Record<Name, Side>>,
): Promise<Record<Name, Turn[]>> {
  const rounds = Math.min(bench.rounds, bench.quick ? 2 : 9);
  const names = Object.keys(sides) as Name[];
  const turns = Object.fromEntries(names.map((name) => [name, [] as Turn[]])) as Record<Name, Turn[]>;
  for (const name of names) await warmUp(load, sides[name].press, bench.quick ? 1 : WARM_REQUESTS);
  bench.say("warmed up");
  for (let round = 0; round < rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const { press, meter } = sides[name];
      await meter.startMeter();
      const pressed = await load.call("press", { ...press, seconds: 1 });
      turns[name].push({ ...pressed, cpuUs: (await meter.readMeter()) / pressed.requests });
    }
    bench.say(`round ${round + 1} of ${rounds}`);
  }
  return turns;
}

async function warmUp(load: Actor<Generator>, press: Side["press"], each: number): Promise<void> {
  // A single caller runs what the fifty have warmed.
  if (press.connections === 1) return;
  for (let left = each * [press.url].flat().length; left > 0;)
    left -= (await load.call("press", { ...press, seconds: 2 })).requests;
}

function hopRows(figure: string, there: readonly Turn[], here: readonly Turn[]): Row[] {
  const rates = compareBy(there, here, ({ perSecond }) => perSecond);
  const p50 = compareBy(there, here, ({ p50Ms }) => p50Ms);
  return [
    { figure, unit: "req/s", ...rates, cpuUs: cpu(there, here), target: atLeast(SHARE_MIN, rates.ratio) },
    { figure: "  p50 of that", unit: "ms", ...p50, target: atMost(P50_TIMES_MAX, p50.ratio) },
  ];
}

function compareBy(ours: readonly Turn[], floor: readonly Turn[], value: (turn: Turn) => number) {
  return compare(ours.map(value), floor.map(value));
}

function cpu(ours: readonly Turn[], floor: readonly Turn[]): NonNullable<Row["cpuUs"]> {
  const own = (turns: readonly Turn[]) => ({ own: median(turns.map(({ cpuUs }) => cpuUs)), server: null });
  return { ours: own(ours), floor: own(floor) };
}

async function submit(url: string): Promise<string> {
  const response = await fetch(`${url}/jobs`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ task: "bench" }),
  });
  if (!response.ok) throw new Error(`a submit ended with ${response.status}: ${await response.text()}`);
  return ((await response.json()) as { job_id: string }).job_id;
}
