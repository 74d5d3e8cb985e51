/**
 * Reads and judges the nodes: through the given addresses first, and then each node itself. Which of them reach each
 * other, whether their versions, settings and views agree, and the leader.
 */

import type { BatonClient, NodeBody } from "../../client/baton-client.ts";
import { BatonClientError } from "../../client/client-error.ts";
import { isLoopback } from "../../core/access/is-loopback.ts";
import { several, span } from "../../core/figures.ts";
import type { Clock } from "../../platform/clock.ts";
import type { ClockReading } from "./clocks.ts";
import { readingOf, sampleClock } from "./clocks.ts";
import type { Judgement } from "./findings.ts";
import { failed, skipped, unless, warning } from "./findings.ts";

export interface NodeFacts {
  readonly name: string;
  readonly alive: boolean;
  readonly status: string;
  readonly version: string;
  readonly url: string | null;
  /** Asked from here; null if it has no address. */
  readonly fromHere: { readonly ok: boolean; readonly reason: string | null } | null;
  /** Whether it answers without a token; null if it was not asked. */
  readonly answersAnybody: boolean | null;
  /** What it says of the others; null if it says nothing. */
  readonly reach: readonly Reach[] | null;
}

export interface Reach {
  readonly node: string;
  readonly ok: boolean;
  readonly latency_ms: number | null;
  readonly reason: string | null;
}

const WALLS =
  "look at firewalls, at http.host and at http.url of that node: it must be an address that the others can use";

export function judgeReach(nodes: readonly NodeFacts[]): readonly Judgement[] {
  const alive = nodes.filter((node) => node.alive);
  const problems: Judgement[] = [];
  for (const { name, url, fromHere, answersAnybody } of alive) {
    if (url === null) {
      problems.push(warning(`${name} has no address that others could use`, "set http.url there"));
    } else if (fromHere && !fromHere.ok) {
      problems.push(warning(`${name} cannot be reached from here (${url}: ${fromHere.reason})`, WALLS));
    }
    // It listens to its own machine only and asks nobody, and something passes on to it what comes from elsewhere.
    if (url !== null && answersAnybody && !isLoopback(hostOf(url))) {
      problems.push(
        failed(
          `${name} answers at ${url} without a token: whoever reaches that can run tasks`,
          "set access.required: always there, and restart it",
        ),
      );
    }
  }
  const names = new Set(alive.map(({ name }) => name));
  const pairs = alive.flatMap((from) =>
    (from.reach ?? []).filter(({ node }) => names.has(node)).map((to) => ({ from: from.name, ...to })),
  );
  const cut = Map.groupBy(
    pairs.filter((pair) => !pair.ok),
    ({ node, reason }) => `${node}${reason === null ? "" : ` (${reason})`}`,
  );
  for (const [whom, those] of cut) {
    const from = those.map((pair) => pair.from);
    const verb = from.length === 1 ? "does" : "do";
    problems.push(failed(`${from.join(", ")} ${verb} not reach ${whom}`, WALLS));
  }
  const slowest = pairs.reduce((worst, pair) => Math.max(worst, pair.latency_ms ?? 0), 0);
  const between =
    pairs.length === 0
      ? alive.length > 1
        ? "; whether they reach each other is not told yet"
        : ""
      : `, and each other (${several(pairs.length, "way")}, the slowest ${span(slowest)})`;
  return unless(problems, `${several(alive.length, "node")} can be reached from here${between}`);
}

function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, "");
}

export interface ClusterFacts {
  readonly formed: boolean;
  readonly minimumNodes: number;
  readonly leader: string | null;
  readonly nodes: readonly Pick<NodeFacts, "name" | "alive" | "status" | "version">[];
  readonly alerts: readonly {
    readonly severity: string;
    readonly message: string;
    readonly remedy: string;
  }[];
  /** What the cluster itself says that people should know. */
  readonly notes: readonly string[];
}

export function judgeCluster(facts: ClusterFacts): readonly Judgement[] {
  const { formed, minimumNodes, leader, nodes, alerts, notes } = facts;
  const problems: Judgement[] = [];
  if (!formed) {
    problems.push(
      failed(
        `the cluster has not formed: at least ${minimumNodes} nodes must gather`,
        "start the others, or lower cluster.minimum_nodes",
      ),
    );
  } else if (leader === null) {
    problems.push(
      failed(
        "nobody leads: schedules do not fire, and jobs of dead nodes stay where they are",
        "look at `baton leader --history`; a node with the role scheduler must be up",
      ),
    );
  }
  for (const { name, status } of nodes.filter((node) => node.status === "dead")) {
    problems.push(
      warning(
        `${name} is ${status}`,
        `start it again; it is forgotten by itself, in a cluster of peers with \`baton node remove ${name}\``,
      ),
    );
  }
  const versions = [...new Set(nodes.filter(({ alive }) => alive).map(({ version }) => version))].sort();
  if (versions.length > 1) {
    problems.push(
      warning(
        `nodes of several versions work together: ${versions.join(", ")}`,
        "bring the older ones up to date: docs/operations.md, Upgrade",
      ),
    );
  }
  // Those are said above already, in the doctor's own words.
  const own = /^(?:no_leader|node_dead|node_unreachable|version_mix)$/;
  for (const alert of alerts.filter((each) => !own.test((each as { code?: string }).code ?? ""))) {
    const say = alert.severity === "critical" ? failed : warning;
    problems.push(say(alert.message, alert.remedy));
  }
  for (const note of notes) problems.push(warning(note, "see docs/operations.md"));
  return unless(
    problems,
    `${leader} leads ${several(nodes.length, "node")} of version ${versions[0] ?? "?"}`,
  );
}

export interface NodeSettings {
  readonly node: string;
  readonly settings: readonly { readonly path: string; readonly value: unknown }[];
}

/** What may well differ from node to node, or is about one machine. */
const OWN =
  /^(?:name|data|tasks|roles|nodes|join|discover|http\.|log\.|worker\.|manager\.|agents?\.|controller\.|threads\.|profile$)/;

export function judgeSettings(all: readonly NodeSettings[]): readonly Judgement[] {
  if (all.length < 2) return [skipped("the settings of fewer than two nodes could be read")];
  const problems: Judgement[] = [];
  const paths = new Set(all.flatMap(({ settings }) => settings.map(({ path }) => path)));
  for (const path of [...paths].filter((each) => !OWN.test(each))) {
    const groups = new Map<string, string[]>();
    for (const { node, settings } of all) {
      const found = settings.find((each) => each.path === path);
      const value = found === undefined ? "(not known)" : JSON.stringify(found.value);
      groups.set(value, [...(groups.get(value) ?? []), node]);
    }
    if (groups.size < 2) continue;
    const each = [...groups].map(([value, nodes]) => `${value} on ${nodes.join(", ")}`).join("; ");
    problems.push(
      warning(`${path} is ${each}`, `give all nodes the same ${path}, and restart those that differ`),
    );
  }
  return unless(problems, `the settings of ${all.map(({ node }) => node).join(", ")} agree where they must`);
}

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
