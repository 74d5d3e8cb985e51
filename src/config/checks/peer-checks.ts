/** Validates the settings of a cluster of peers in combination. */

import type { Address } from "../values/address.ts";
import { parseAddress, reaches } from "../values/address.ts";
import { parseDiscovery } from "../values/discovery.ts";
import { formatDuration } from "../values/duration.ts";
import type { NodeMap } from "../values/node-map.ts";
import { listenerOf } from "../values/node-map.ts";
import type { SettingPath } from "../settings.ts";
import type { Source } from "../sources/source.ts";
import { isChosen, describeMistake } from "../sources/source.ts";
import { isPostgresUrl } from "../values/store-url.ts";
import type { Value } from "../values/value.ts";

type Values = ReadonlyMap<string, Value>;

const MEMBERSHIP = ["nodes", "join", "discover"] as const;
const PEERS = [...MEMBERSHIP, "manager.addr"] as const;

/** Whether any of the values makes the node one of several that know each other. */
export function hasPeers(values: Values): boolean {
  return PEERS.some((path) => isGiven(values.get(path)));
}

export function peerMistakes(values: Values, sources: ReadonlyMap<string, Source>): string[] {
  const mistakes: string[] = [];
  const mistake = (path: SettingPath, text: string): void =>
    void mistakes.push(describeMistake(sources.get(path)!, path, text));
  const given = PEERS.filter((path) => isGiven(values.get(path)));
  if (given.length === 0) return [];

  const store = values.get("store");
  if (typeof store === "string" && isPostgresUrl(store)) {
    mistake(
      given[0]!,
      "does not go with store: postgres://…, where all nodes on the database are the cluster; remove one of the two",
    );
    return mistakes;
  }
  const [first, second] = MEMBERSHIP.filter((path) => isGiven(values.get(path)));
  if (second !== undefined)
    mistake(second, `does not go with ${first}; the nodes are listed, or joined, or looked up`);
  checkNodes(values, sources, mistake);
  checkManager(values, mistake);
  checkElection(values, mistake);
  const discover = values.get("discover");
  if (typeof discover === "string" && discover !== "" && parseDiscovery(discover) === null) {
    mistake(
      "discover",
      `must be a DNS name such as baton.internal, baton.internal:8420 or srv:_baton._tcp.internal, not ${JSON.stringify(discover)}`,
    );
  }
  for (const text of (values.get("join") ?? []) as readonly string[]) {
    const target = parseAddress(text)!;
    if (ownAddresses(values).some(({ address }) => reaches(target, address)))
      mistake("join", `has this node's own address, ${text}; a node joins through another one`);
  }
  return mistakes;
}

type Tell = (path: SettingPath, text: string) => void;

function checkNodes(values: Values, sources: ReadonlyMap<string, Source>, mistake: Tell): void {
  const nodes = (values.get("nodes") ?? {}) as NodeMap;
  const name = values.get("name") as string | undefined;
  const names = Object.keys(nodes);
  if (names.length === 0 || name === undefined) return;
  if (!Object.hasOwn(nodes, name)) {
    const remedy = isChosen(sources.get("name")!) ? "" : "; say which one this is with --name";
    mistake("name", `must be one of nodes (${names.join(", ")}), not ${JSON.stringify(name)}${remedy}`);
    return;
  }
  const http = ownAddresses(values).find(({ path }) => path === "http.port");
  for (const [other, url] of Object.entries(nodes)) {
    const target = listenerOf(url);
    if (other !== name && http && target && reaches(target, http.address))
      mistake("nodes", `has ${url} for ${other}, which is where this node, ${name}, listens`);
  }
  const least = values.get("cluster.minimum_nodes") as number | undefined;
  if (least !== undefined && least > names.length)
    mistake("cluster.minimum_nodes", `must be at most ${names.length}, the number of nodes`);
}

function checkManager(values: Values, mistake: Tell): void {
  const [addr, user, pass] = ["manager.addr", "manager.user", "manager.pass"].map((path) => values.get(path));
  if (addr === undefined || user === undefined || pass === undefined) return;
  if (addr !== "" && (user === "" || pass === "")) {
    mistake("manager.addr", "needs manager.user and manager.pass: the join server lets in who knows them");
  } else if ((user === "") !== (pass === "")) {
    mistake(
      user === "" ? "manager.pass" : "manager.user",
      "needs the other of manager.user and manager.pass",
    );
  }
  const own = ownAddresses(values);
  const [manager, http] = [
    own.find(({ path }) => path === "manager.addr"),
    own.find(({ path }) => path === "http.port"),
  ];
  if (manager && http && reaches(manager.address, http.address))
    mistake("manager.addr", "must have a port of its own, other than http.port");
}

/** An attempt to lead has two rounds, and half of what a lease leaves beside renewal and margin (elector.ts). */
function checkElection(values: Values, mistake: Tell): void {
  const paths = ["leader.lease", "leader.renew", "leader.margin", "peers.election_timeout"] as const;
  if (!paths.every((path) => values.has(path))) return;
  const [leaseMs, renewMs, marginMs, timeoutMs] = paths.map((path) => values.get(path) as number) as [
    number,
    number,
    number,
    number,
  ];
  if (leaseMs - renewMs - marginMs >= 4 * timeoutMs) return;
  mistake(
    "peers.election_timeout",
    `(${formatDuration(timeoutMs)}) is too long: four of it must fit into leader.lease (${formatDuration(leaseMs)}) beside leader.renew (${formatDuration(renewMs)}) and leader.margin (${formatDuration(marginMs)}), otherwise nobody wins an election on a slow network`,
  );
}

/** Where this node listens, as far as it is known before it does. */
function ownAddresses(values: Values): { path: "manager.addr" | "http.port"; address: Address }[] {
  const manager = parseAddress((values.get("manager.addr") ?? "") as string);
  const [host, port] = [values.get("http.host"), values.get("http.port")];
  return [
    ...(manager && manager.port !== 0 ? [{ path: "manager.addr" as const, address: manager }] : []),
    ...(typeof host === "string" && typeof port === "number" && port !== 0
      ? [{ path: "http.port" as const, address: { host, port } }]
      : []),
  ];
}

function isGiven(value: Value | undefined): boolean {
  if (value === undefined || value === "") return false;
  return typeof value !== "object" || Object.keys(value).length > 0;
}
