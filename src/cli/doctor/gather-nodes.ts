/** Gathers facts about the nodes: through the given addresses first, and then from each node itself. */

import type { BatonClient, NodeBody } from "../../client/baton-client.ts";
import { BatonClientError } from "../../client/client-error.ts";
import type { Clock } from "../../platform/clock.ts";
import { sampleClock } from "./clock-samples.ts";
import type { ClockReading } from "./judge-clocks.ts";
import { readingOf } from "./judge-clocks.ts";
import type { ClusterFacts, NodeFacts, NodeSettings, Reach } from "./judge-nodes.ts";

/** Without a token for `anybody`. */
type Connect = (url: string, as?: "anybody") => Promise<BatonClient>;

export interface NodesQuestion {
  /** Asked in turn until one answers. */
  readonly urls: readonly string[];
  readonly connect: Connect;
  readonly clock: Clock;
}

export interface NodesAnswer {
  /** The address that answered. */
  readonly url: string;
  readonly nodes: readonly NodeFacts[];
  readonly clocks: readonly ClockReading[];
  readonly cluster: ClusterFacts;
  readonly settings: readonly NodeSettings[];
}

export interface NoNode {
  readonly url: null;
  /** Why, address by address. */
  readonly reasons: readonly { readonly url: string; readonly reason: string; readonly refused: boolean }[];
}

export async function askNodes({ urls, connect, clock }: NodesQuestion): Promise<NodesAnswer | NoNode> {
  const reasons: NoNode["reasons"][number][] = [];
  for (const url of urls) {
    await using client = await connect(url);
    try {
      return await askThrough(client, url, connect, clock);
    } catch (error) {
      reasons.push({ url, reason: reasonOf(error), refused: isRefusal(error) });
    }
  }
  return { url: null, reasons };
}

async function askThrough(
  client: BatonClient,
  url: string,
  connect: Connect,
  clock: Clock,
): Promise<NodesAnswer> {
  const [{ nodes }, info, overview] = await Promise.all([
    client.cluster.nodes(),
    client.cluster.info(),
    unlessRefused(client.cluster.overview()),
  ]);
  const asked = await Promise.all(nodes.map((node) => askOne(node, connect, clock)));
  return {
    url,
    nodes: asked.map(({ facts }) => facts),
    clocks: asked.flatMap((each) => each.clock ?? []),
    settings: asked.flatMap((each) => each.settings ?? []),
    cluster: {
      formed: info.formed,
      minimumNodes: info.minimum_nodes,
      leader: info.scheduler_leader,
      nodes,
      alerts: overview?.alerts ?? [],
      notes: info.notes,
    },
  };
}

interface AskedNode {
  readonly facts: NodeFacts;
  readonly clock: ClockReading | null;
  readonly settings: NodeSettings | null;
}

async function askOne(node: NodeBody, connect: Connect, clock: Clock): Promise<AskedNode> {
  const { name, alive, status, version, url } = node;
  const reach = (node as { reach?: readonly Reach[] }).reach ?? null;
  const facts = { name, alive, status, version, url, reach, answersAnybody: null };
  if (url === null || !alive) return { facts: { ...facts, fromHere: null }, clock: null, settings: null };
  await using client = await connect(url);
  try {
    const samples = await sampleClock(clock, async () => {
      const { started_at: startedAt, uptime_ms: uptimeMs } = await client.status();
      return Date.parse(startedAt) + uptimeMs;
    });
    const settings = await unlessRefused(client.settings());
    const answersAnybody = await letsIn(await connect(url, "anybody"));
    return {
      facts: { ...facts, answersAnybody, fromHere: { ok: true, reason: null } },
      clock: readingOf(name, samples),
      settings,
    };
  } catch (error) {
    return {
      facts: { ...facts, fromHere: { ok: false, reason: reasonOf(error) } },
      clock: null,
      settings: null,
    };
  }
}

async function letsIn(anybody: BatonClient): Promise<boolean> {
  await using client = anybody;
  return (await unlessRefused(client.status())) !== null;
}

/** Null from a node that is too old, or for a caller who may not ask. */
async function unlessRefused<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof BatonClientError && error.status !== null && error.status < 500) return null;
    throw error;
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof BatonClientError && (error.status === 401 || error.status === 403);
}

function reasonOf(error: unknown): string {
  if (!(error instanceof BatonClientError)) throw error;
  if (error.code === "TIMEOUT") return "no answer in time";
  return error.systemCode ?? error.message;
}
