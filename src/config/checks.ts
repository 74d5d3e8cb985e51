/** Validates settings in combination. Each value for itself has been read before (values/). */

import { isLoopback } from "../core/access/permissions.ts";
import { type GivenProfile, mainProfile } from "./definitions/profiles.ts";
import { describeMistake, isChosen, type Source } from "./mistake.ts";
import { weakness } from "./secrets/cluster-secret.ts";
import type { SettingPath, Settings } from "./settings.ts";
import { type Address, isAddressRange, parseAddress, reaches } from "./values/address.ts";
import { parseDiscovery, listenerOf, type NodeMap } from "./values/node-map.ts";
import { isPostgresUrl } from "./values/secret-url.ts";
import { durationText } from "../core/duration.ts";
import type { Value } from "./setting-value.ts";

/** A value that could not be read is missing, and has been reported already. */
type Values = ReadonlyMap<string, Value>;
type Sources = ReadonlyMap<string, Source>;
type Report = (path: SettingPath, mistake: string) => void;

export function checkSettings(values: Values, sources: Sources): string[] {
  const mistakes: string[] = [];
  const report: Report = (path, text) => void mistakes.push(describeMistake(sources.get(path)!, path, text));
  for (const relation of RELATIONS) checkRelation(relation, values, sources, report);
  checkFabric(values, report);
  checkPeers(values, sources, report);
  checkAccess(values, report);
  return mistakes;
}

export function asksCallers({ access, http }: Pick<Settings, "access" | "http">): boolean {
  return access.required === "always" || !isLoopback(http.host);
}

interface Relation {
  readonly longer: SettingPath;
  readonly than: readonly SettingPath[];
  readonly times: number;
  readonly orEqual?: true;
  readonly onlyIf?: (values: Values) => boolean;
  readonly because: string;
}

const RELATIONS: readonly Relation[] = [
  {
    longer: "leader.lease",
    than: ["leader.renew", "leader.margin"],
    times: 1,
    because: "otherwise a leader stops trusting its lease before it renews it",
  },
  {
    longer: "worker.lease",
    than: ["worker.renew"],
    times: 2,
    because: "otherwise one late renewal loses the jobs that are running",
  },
  {
    longer: "drain.timeout",
    than: ["drain.cleanup"],
    times: 1,
    because: "otherwise handlers are told to stop before the drain begins",
  },
  {
    longer: "node.dead_after",
    than: ["node.heartbeat"],
    times: 2,
    orEqual: true,
    onlyIf: (values) => !hasPeers(values),
    because: "otherwise one late heartbeat looks like a death",
  },
  {
    longer: "node.dead_after",
    than: ["peers.health_interval", "peers.heartbeat_timeout"],
    times: 1,
    orEqual: true,
    onlyIf: hasPeers,
    because: "otherwise one slow answer looks like a death",
  },
];

function checkRelation(relation: Relation, values: Values, sources: Sources, report: Report): void {
  const { longer, than, times, orEqual, because } = relation;
  const paths = [longer, ...than];
  if (!paths.every((path) => values.has(path)) || relation.onlyIf?.(values) === false) return;
  const ms = (path: string): number => values.get(path) as number;
  const least = than.reduce((sum, path) => sum + ms(path), 0) * times;
  if (ms(longer) > least || (orEqual && ms(longer) === least)) return;

  const written = (path: string): string => `${path} (${durationText(ms(path))})`;
  const bound = `${times === 1 ? "" : `${times} × `}${than.map(written).join(" + ")}`;
  const culprit = paths.find((path) => isChosen(sources.get(path)!)) ?? longer;
  const must = `must be ${orEqual ? "at least" : "longer than"} ${bound}`;
  const mistake =
    culprit === longer ? `${must}: ${because}` : `is too long: ${written(longer)} ${must}, ${because}`;
  report(culprit, `(${durationText(ms(culprit))}) ${mistake}`);
}

function checkFabric(values: Values, report: Report): void {
  const store = values.get("store");
  if (values.get("etcd.url") && values.get("redis.url"))
    report("etcd.url", "does not go with redis.url: one of the two elects the leader; remove the other");
  if (typeof store !== "string" || isPostgresUrl(store)) return;
  for (const path of ["redis.url", "etcd.url"] as const) {
    if (values.get(path))
      report(path, "needs a database beside it, which keeps the jobs: store: postgres://…");
  }
  const profile = values.get("profile") as GivenProfile | undefined;
  const pushes = profile !== undefined && mainProfile(profile) === "push";
  if (values.get("dispatch.mode") === "push" && !pushes)
    report(
      "dispatch.mode",
      `cannot be push with the store ${store}: nobody else could take the jobs; leave it out`,
    );
  if (hasPeers(values)) return;
  const alone = (so: string, todo: string): string =>
    `with the store ${store}: it belongs to this node alone, so ${so}; ${todo}name other nodes (nodes, join), or share a database with store: postgres://…`;
  const roles = values.get("roles") as readonly string[] | undefined;
  if (roles && !roles.includes("scheduler"))
    report("roles", `must have scheduler ${alone("nobody else could lead", "add it, or ")}`);
  if (((values.get("cluster.minimum_nodes") as number | undefined) ?? 1) > 1)
    report("cluster.minimum_nodes", `must be 1 ${alone("nobody can join", "")}`);
}

const MEMBERSHIP = ["nodes", "join", "discover"] as const;
const PEERS = [...MEMBERSHIP, "manager.addr"] as const;

function hasPeers(values: Values): boolean {
  return PEERS.some((path) => isGiven(values.get(path)));
}

function isGiven(value: Value | undefined): boolean {
  if (value === undefined || value === "") return false;
  return typeof value !== "object" || Object.keys(value).length > 0;
}

function checkPeers(values: Values, sources: Sources, report: Report): void {
  const given = PEERS.find((path) => isGiven(values.get(path)));
  if (given === undefined) return;
  const store = values.get("store");
  if (typeof store === "string" && isPostgresUrl(store)) {
    report(
      given,
      "does not go with store: postgres://…, where all nodes on the database are the cluster; remove one of the two",
    );
    return;
  }
  const [first, second] = MEMBERSHIP.filter((path) => isGiven(values.get(path)));
  if (second !== undefined)
    report(second, `does not go with ${first}; the nodes are listed, or joined, or looked up`);
  checkNodes(values, sources, report);
  checkManager(values, report);
  checkElection(values, report);
  const discover = values.get("discover");
  if (typeof discover === "string" && discover !== "" && parseDiscovery(discover) === null) {
    report(
      "discover",
      `must be a DNS name such as baton.internal, baton.internal:8420 or srv:_baton._tcp.internal, not ${JSON.stringify(discover)}`,
    );
  }
  const own = Object.values(ownAddresses(values));
  for (const text of (values.get("join") ?? []) as readonly string[]) {
    if (own.some((address) => address && reaches(parseAddress(text)!, address)))
      report("join", `has this node's own address, ${text}; a node joins through another one`);
  }
}

function checkNodes(values: Values, sources: Sources, report: Report): void {
  const nodes = (values.get("nodes") ?? {}) as NodeMap;
  const name = values.get("name") as string | undefined;
  const names = Object.keys(nodes);
  if (names.length === 0 || name === undefined) return;
  if (!Object.hasOwn(nodes, name)) {
    const remedy = isChosen(sources.get("name")!) ? "" : "; say which one this is with --name";
    report("name", `must be one of nodes (${names.join(", ")}), not ${JSON.stringify(name)}${remedy}`);
    return;
  }
  const { http } = ownAddresses(values);
  for (const [other, url] of Object.entries(nodes)) {
    const target = listenerOf(url);
    if (other !== name && http && target && reaches(target, http))
      report("nodes", `has ${url} for ${other}, which is where this node, ${name}, listens`);
  }
  const least = values.get("cluster.minimum_nodes") as number | undefined;
  if (least !== undefined && least > names.length)
    report("cluster.minimum_nodes", `must be at most ${names.length}, the number of nodes`);
}

function checkManager(values: Values, report: Report): void {
  const [addr, user, pass] = ["manager.addr", "manager.user", "manager.pass"].map((path) => values.get(path));
  if (addr === undefined || user === undefined || pass === undefined) return;
  if (addr !== "" && (user === "" || pass === "")) {
    report("manager.addr", "needs manager.user and manager.pass: the join server lets in who knows them");
  } else if ((user === "") !== (pass === "")) {
    const path = user === "" ? "manager.pass" : "manager.user";
    report(path, "needs the other of manager.user and manager.pass");
  }
  const { manager, http } = ownAddresses(values);
  if (manager && http && reaches(manager, http))
    report("manager.addr", "must have a port of its own, other than http.port");
}

/** An attempt to lead has two rounds, and half of what a lease leaves beside renewal and margin (elector.ts). */
function checkElection(values: Values, report: Report): void {
  const paths = ["leader.lease", "leader.renew", "leader.margin", "peers.election_timeout"];
  if (!paths.every((path) => values.has(path))) return;
  const [leaseMs, renewMs, marginMs, timeoutMs] = paths.map((path) => values.get(path) as number);
  if (leaseMs! - renewMs! - marginMs! >= 4 * timeoutMs!) return;
  const [lease, renew, margin, timeout] = [leaseMs!, renewMs!, marginMs!, timeoutMs!].map(durationText);
  report(
    "peers.election_timeout",
    `(${timeout}) is too long: four of it must fit into leader.lease (${lease}) beside leader.renew (${renew}) and leader.margin (${margin}), otherwise nobody wins an election on a slow network`,
  );
}

/** Where this node listens, as far as it is known before it does. */
function ownAddresses(values: Values): { readonly manager: Address | null; readonly http: Address | null } {
  const manager = parseAddress((values.get("manager.addr") ?? "") as string);
  const [host, port] = [values.get("http.host"), values.get("http.port")];
  return {
    manager: manager?.port === 0 ? null : manager,
    http: typeof host === "string" && typeof port === "number" && port !== 0 ? { host, port } : null,
  };
}

function checkAccess(values: Values, report: Report): void {
  const token = values.get("access.token");
  if (typeof token === "string" && token !== "") {
    const why = /^[\x21-\x7e]*$/.test(token)
      ? weakness(token)
      : "has a space or another character that does not fit into a header";
    const remedy =
      "make one with: baton secret create --file baton.token, and set BATON_ACCESS__TOKEN_FILE to its path";
    if (why !== null) report("access.token", `${why}; ${remedy}`);
  }
  const proxies = (values.get("http.trusted_proxies") ?? []) as readonly string[];
  const bad = proxies.filter((each) => !isAddressRange(each));
  if (bad.length > 0) {
    const why = `must be addresses or ranges such as 10.0.0.0/8, and ${bad.join(" and ")} is none`;
    report("http.trusted_proxies", why);
  }
}
