/**
 * The keys of the list of nodes:
 *
 *     node/<incarnation>   what a node reports about itself, its status, and whether its work was recovered after its death
 *     name/<name>          the incarnation that has this name, under the lease of that incarnation: gone when the node is
 *     request/<incarnation>   what was requested of it
 *
 * The entry outlives the node, so that a leader finds its work; the name does not, so that the next incarnation can
 * take it at once.
 */

import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity, NodeLoad, NodeStatus, OwnInfo } from "../../core/node.ts";
import type { Registered } from "../registered-membership.ts";
import type { KeyValue } from "./key-value.ts";

export interface NodeEntry {
  readonly name: NodeName;
  readonly status: NodeStatus;
  /** By the clock of the node. */
  readonly at: number;
  /** Of one that is dead: its work was taken back. */
  readonly recovered: boolean;
  readonly info: Partial<OwnInfo>;
}

/** An entry with what etcd knows of it. */
export interface NodeRow extends NodeIdentity {
  readonly entry: NodeEntry;
  /** Another one with every heartbeat. */
  readonly revision: number;
}

const IDLE: NodeLoad = { jobs: 0, connections: 0, cpu: 0, memory: 0, loopLagMs: 0 };

/** What nobody can read is left out. */
export function readRows(found: readonly KeyValue[] = [], folder: string): readonly NodeRow[] {
  return found.flatMap(({ key, value, revision }) => {
    const entry = readEntry(value);
    return entry ? [{ name: entry.name, incarnation: key.slice(folder.length), entry, revision }] : [];
  });
}

/** The incarnation that each name belongs to. */
export function readNames(found: readonly KeyValue[] = [], folder: string): ReadonlyMap<string, string> {
  return new Map(found.map(({ key, value }) => [key.slice(folder.length), value]));
}

/** A newer version may tell more of itself, an older one less. */
export function registered({ name, incarnation, entry }: NodeRow, ageMs: number): Registered {
  const { info, status, at } = entry;
  const node = {
    name,
    incarnation,
    url: info.url ?? null,
    hostname: info.hostname ?? "unknown",
    address: info.address ?? null,
    httpPort: info.httpPort ?? null,
    roles: info.roles ?? [],
    capabilities: info.capabilities ?? [],
    version: info.version ?? "unknown",
    status,
    startedAt: info.startedAt ?? 0,
    lastSeenAt: at,
    load: { ...IDLE, ...info.load },
  };
  return { node, ageMs };
}

function readEntry(value: string): NodeEntry | null {
  try {
    const told = JSON.parse(value) as Partial<NodeEntry> | null;
    if (typeof told?.name !== "string" || typeof told.status !== "string") return null;
    const { name, status, at = 0, recovered = false, info } = told;
    return { name, status, at, recovered, info: typeof info === "object" && info !== null ? info : {} };
  } catch {
    return null;
  }
}
