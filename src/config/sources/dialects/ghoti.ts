/** Reads the section `cluster` of a Ghoti file. Its other sections concern that system's own data and are ignored. */

import { listeningHost, parseAddress } from "../../values/address.ts";
import type { Entry, YamlDocument } from "../yaml-document.ts";
import type { Dialect } from "./dialects.ts";

/** That system counts bytes of UTF-8. */
const NAME_BYTES_MAX = 20;
const CREDENTIAL_LENGTH_MIN = 4;
const BIND = "localhost:25873";
const KEYS = ["node", "bind", "user", "pass", "manager"];
const NEEDED = "node, user, pass, manager.type, manager.addr";
const MANAGER_KEYS = ["type", "addr", "join"];

export const GHOTI: Dialect = {
  /** We have a section `cluster` too, but neither of these in it. */
  speaks: (top) => clusterOf(top)?.entries?.some(({ key }) => key === "node" || key === "manager") === true,

  read(document, top) {
    const cluster = clusterOf(top)!;
    readNode(document, cluster);
    readManager(document, cluster);
    const ignored = [
      ...top.filter((entry) => entry !== cluster).map(({ key }) => key),
      ...unknown(cluster, KEYS, "cluster"),
      ...unknown(find(cluster, "manager"), MANAGER_KEYS, "cluster.manager"),
    ];
    if (ignored.length > 0) document.warn(`ignored: ${ignored.join(", ")}`);
  },
};

function readNode(document: YamlDocument, cluster: Entry): void {
  const node = required(document, cluster, "node", "cluster.node");
  if (node && Buffer.byteLength(node.text) > NAME_BYTES_MAX) {
    document.mistake(
      node.at,
      `cluster.node has ${Buffer.byteLength(node.text)} characters; at most ${NAME_BYTES_MAX} are allowed`,
    );
  } else if (node) document.take("name", node.text, node.at);

  const bind = find(cluster, "bind");
  const written = bind?.text || BIND;
  const at = bind?.valueAt ?? cluster.at;
  const address = parseAddress(written);
  if (address === null) {
    document.mistake(at, `cluster.bind must be an address such as ${BIND}, not ${JSON.stringify(written)}`);
  } else {
    document.take("http.host", address.host === "" ? "0.0.0.0" : listeningHost(address.host), at);
    document.take("http.port", address.port, at);
  }
  for (const key of ["user", "pass"]) {
    const entry = required(document, cluster, key, `cluster.${key}`);
    if (!entry) continue;
    if (entry.text.length < CREDENTIAL_LENGTH_MIN) {
      document.mistake(entry.at, `cluster.${key} must have at least ${CREDENTIAL_LENGTH_MIN} characters`);
    } else document.take(`manager.${key}`, entry.text, entry.at);
  }
}

function readManager(document: YamlDocument, cluster: Entry): void {
  const manager = find(cluster, "manager") ?? { ...cluster, entries: [] };
  const type = required(document, manager, "type", "cluster.manager.type");
  if (type && type.text !== "join_server") {
    document.mistake(type.at, `cluster.manager.type must be join_server, not ${JSON.stringify(type.text)}`);
  }
  const addr = required(document, manager, "addr", "cluster.manager.addr");
  if (addr) document.take("manager.addr", addr.text, addr.at);
  const join = find(manager, "join");
  if (join?.text) document.take("join", [join.text], join.valueAt);
}

function clusterOf(top: readonly Entry[]): Entry | undefined {
  return top.find(({ key }) => key === "cluster");
}

function find(section: Entry | undefined, key: string): Entry | undefined {
  return section?.entries?.find((entry) => entry.key === key);
}

function required(
  document: YamlDocument,
  section: Entry,
  key: string,
  path: string,
): { readonly text: string; readonly at: number } | null {
  const entry = find(section, key);
  if (entry?.text) return { text: entry.text, at: entry.valueAt };
  document.mistake(entry?.at ?? section.at, `${path} is missing; the section cluster needs ${NEEDED}`);
  return null;
}

function unknown(section: Entry | undefined, known: readonly string[], path: string): string[] {
  return (section?.entries ?? [])
    .filter(({ key }) => !known.includes(key))
    .map(({ key }) => `${path}.${key}`);
}
