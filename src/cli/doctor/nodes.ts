/** Reads and judges the nodes: who reaches whom, who leads, and whether versions, settings and views agree. */

import type { AlertBody, BatonClient, ClusterBody, NodeBody } from "../../client/baton-client.ts";
import { CallError } from "../../client/client-error.ts";
import { isLoopback } from "../../core/access/permissions.ts";
import { several, span } from "../../core/format-figures.ts";
import type { Clock } from "../../platform/clock.ts";
import { unreached, waysBetween } from "../cluster/node-text.ts";
import { readClock } from "./clocks.ts";
import { failed, judged, type Judgement, type Rule, skipped, warning } from "./findings.ts";

export type Reach = NodeBody["reach"][number];

export interface NodeFacts extends Pick<NodeBody, "name" | "alive" | "version" | "url"> {
  readonly status: string;
  readonly fromHere: { readonly ok: boolean; readonly reason: string | null } | null;
  readonly answersAnybody: boolean | null;
  readonly reach: readonly Reach[];
}

const WALLS =
  "look at firewalls, at http.host and at http.url of that node: it must be an address that the others can use";

export function judgeReach(nodes: readonly NodeFacts[]): readonly Judgement[] {
  const alive = nodes.filter((node) => node.alive);
  const ways = waysBetween(alive);
  const slowest = ways.reduce((worst, way) => Math.max(worst, way.latency_ms ?? 0), 0);
  const unknown = alive.length > 1 ? "; whether they reach each other is not told yet" : "";
  const between = `, and each other (${several(ways.length, "way")}, the slowest ${span(slowest)})`;
  return judged(
    [
      ...alive.flatMap(judgeAddress),
      ...unreached(ways).map(({ from, to, reason }) => {
        const whom = `${to}${reason === null ? "" : ` (${reason})`}`;
        return failed(`${from.join(", ")} ${from.length === 1 ? "does" : "do"} not reach ${whom}`, WALLS);
      }),
    ],
    `${several(alive.length, "node")} can be reached from here${ways.length === 0 ? unknown : between}`,
  );
}

function judgeAddress({ name, url, fromHere, answersAnybody }: NodeFacts): Rule[] {
  if (url === null) return [warning(`${name} has no address that others could use`, "set http.url there")];
  return [
    fromHere?.ok === false &&
      warning(`${name} cannot be reached from here (${url}: ${fromHere.reason})`, WALLS),
    // It listens to its own machine only and asks nobody, and something passes on to it what comes from elsewhere.
    answersAnybody === true &&
      !isLoopback(new URL(url).hostname) &&
      failed(
        `${name} answers at ${url} without a token: whoever reaches that can run tasks`,
        "set access.required: always there, and restart it",
      ),
  ];
}

export interface ClusterFacts extends Pick<
  ClusterBody,
  "formed" | "minimum_nodes" | "scheduler_leader" | "notes"
> {
  readonly nodes: readonly Pick<NodeFacts, "name" | "alive" | "status" | "version">[];
  readonly alerts: readonly Pick<AlertBody, "code" | "severity" | "message" | "remedy">[];
}

export function judgeCluster(facts: ClusterFacts): readonly Judgement[] {
  const { formed, minimum_nodes: minimumNodes, scheduler_leader: leader, nodes, alerts, notes } = facts;
  const dead = nodes.filter(({ status }) => status === "dead");
  const versions = [...new Set(nodes.filter(({ alive }) => alive).map(({ version }) => version))].sort();
  return judged(
    [
      !formed &&
        failed(
          `the cluster has not formed: at least ${minimumNodes} nodes must gather`,
          "start the others, or lower cluster.minimum_nodes",
        ),
      formed &&
        leader === null &&
        failed(
          "nobody leads: schedules do not fire, and jobs of dead nodes stay where they are",
          "look at `baton leader --history`; a node with the role scheduler must be up",
        ),
      ...dead.map(({ name, status }) =>
        warning(
          `${name} is ${status}`,
          `start it again; it is forgotten by itself, in a cluster of peers with \`baton node remove ${name}\``,
        ),
      ),
      versions.length > 1 &&
        warning(
          `nodes of several versions work together: ${versions.join(", ")}`,
          "bring the older ones up to date: docs/operations.md, Upgrade",
        ),
      ...alerts
        .filter(({ code }) => !SAID_ABOVE.test(code))
        .map(({ severity, message, remedy }) =>
          (severity === "critical" ? failed : warning)(message, remedy),
        ),
      ...notes.map((note) => warning(note, "see docs/operations.md")),
    ],
    `${leader} leads ${several(nodes.length, "node")} of version ${versions[0] ?? "?"}`,
  );
}

/** Alerts that this command words itself. */
const SAID_ABOVE = /^(?:no_leader|node_dead|node_unreachable|version_mix)$/;

export interface NodeSettings {
  readonly node: string;
  readonly settings: readonly { readonly path: string; readonly value: unknown }[];
}

/** What may well differ from node to node, or is about one machine. */
const OWN =
  /^(?:name|data|tasks|roles|nodes|join|discover|http\.|log\.|worker\.|manager\.|agents?\.|controller\.|threads\.|profile$)/;

export function judgeSettings(all: readonly NodeSettings[]): readonly Judgement[] {
  if (all.length < 2) return [skipped("the settings of fewer than two nodes could be read")];
  const paths = new Set(all.flatMap(({ settings }) => settings.map(({ path }) => path)));
  const rules = [...paths]
    .filter((path) => !OWN.test(path))
    .map((path) => {
      const groups = Map.groupBy(all, ({ settings }) => {
        const found = settings.find((each) => each.path === path);
        return found === undefined ? "(not known)" : JSON.stringify(found.value);
      });
      const each = [...groups].map(
        ([value, those]) => `${value} on ${those.map(({ node }) => node).join(", ")}`,
      );
      const remedy = `give all nodes the same ${path}, and restart those that differ`;
      return groups.size > 1 && warning(`${path} is ${each.join("; ")}`, remedy);
    });
  return judged(rules, `the settings of ${all.map(({ node }) => node).join(", ")} agree where they must`);
}

export type Connect = (url: string, as?: "anybody") => Promise<BatonClient>;

export type NodesAnswer = Awaited<ReturnType<typeof askThrough>>;

export interface NoNode {
  readonly url: null;
  readonly reasons: readonly { readonly url: string; readonly reason: string; readonly refused: boolean }[];
}

export async function askNodes(
  urls: readonly string[],
  connect: Connect,
  clock: Clock,
): Promise<NodesAnswer | NoNode> {
  const reasons: NoNode["reasons"][number][] = [];
  for (const url of urls) {
    await using client = await connect(url);
    try {
      return await askThrough(client, url, connect, clock);
    } catch (error) {
      const reason = reasonOf(error);
      const { status } = error as CallError;
      reasons.push({ url, reason, refused: status === 401 || status === 403 });
    }
  }
  return { url: null, reasons };
}

async function askThrough(client: BatonClient, url: string, connect: Connect, clock: Clock) {
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
    cluster: { ...info, nodes, alerts: overview?.alerts ?? [] } satisfies ClusterFacts,
  };
}

async function askOne(node: NodeBody, connect: Connect, clock: Clock) {
  const { name, alive, status, version, url, reach } = node;
  const facts: NodeFacts = { name, alive, status, version, url, reach, fromHere: null, answersAnybody: null };
  const silent = { facts, clock: null, settings: null };
  if (url === null || !alive) return silent;
  await using client = await connect(url);
  try {
    const reading = await readClock(name, clock, async () => {
      const { started_at: startedAt, uptime_ms: uptimeMs } = await client.status();
      return Date.parse(startedAt) + uptimeMs;
    });
    const settings = await unlessRefused(client.settings());
    const answersAnybody = await letsIn(await connect(url, "anybody"));
    return {
      facts: { ...facts, answersAnybody, fromHere: { ok: true, reason: null } },
      clock: reading,
      settings,
    };
  } catch (error) {
    return { ...silent, facts: { ...facts, fromHere: { ok: false, reason: reasonOf(error) } } };
  }
}

async function letsIn(anybody: BatonClient): Promise<boolean> {
  await using client = anybody;
  return (await unlessRefused(client.status())) !== null;
}

async function unlessRefused<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof CallError && error.status !== null && error.status < 500) return null;
    throw error;
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof CallError)) throw error;
  if (error.code === "TIMEOUT") return "no answer in time";
  return error.systemCode ?? error.message;
}
