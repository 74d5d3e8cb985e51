/**
 * Decides which nodes have died, from the successive snapshots that a leader reads.
 *
 *   evidence    the node's database session is absent from every snapshot for `SESSION_GONE_MS`
 *   suspicion   its heartbeat has not changed in any snapshot for `deadAfterMs`
 *
 * Both periods are measured between the leader's own snapshots, on its own monotonic clock. The alternative, comparing
 * the time of a heartbeat with the clock of the database, was rejected: when that clock is set, all nodes would appear
 * dead at once. A new leader therefore declares no node dead before it has watched for the whole period. The same holds
 * after an interruption, because a database that was unavailable did not receive heartbeats either.
 */

import type { NodeStatus } from "../node.ts";

export interface NodeSign {
  readonly incarnation: string;
  readonly status: NodeStatus;
  /** Only compared with its earlier value. */
  readonly heartbeat: number;
  /** Whether it keeps a session whose absence is evidence. */
  readonly locked: boolean;
  readonly held: boolean;
}

export interface Snapshot {
  /** Monotonic clock of the leader. */
  readonly at: number;
  /** Changes with a restart of the server, which ends every session and proves nothing. */
  readonly server: string;
  readonly serverUpMs: number;
  readonly nodes: readonly NodeSign[];
}

/** Kept between snapshots; a new term begins with `NOTHING_SEEN`. */
export interface Watch {
  readonly at: number;
  readonly server: string;
  readonly nodes: ReadonlyMap<string, Watched>;
}

interface Watched {
  readonly heartbeat: number;
  readonly heartbeatSince: number;
  /** Since when its session has been absent from every snapshot; null if it was in the last one. */
  readonly missingSince: number | null;
}

export const NOTHING_SEEN: Watch | null = null;

/** Shorter, and a node that only reconnects (about 20 ms) is taken for dead on a busy machine. */
export const SESSION_GONE_MS = 300;

/** A leader that recovers the work of a node takes no snapshots meanwhile. Shorter, and it would start again. */
const GAP_MS_MIN = 500;

/** States of a newer version are not judged. */
const MORTAL: ReadonlySet<NodeStatus> = new Set(["joining", "active", "draining"]);

export function judge(
  before: Watch | null,
  look: Snapshot,
  { deadAfterMs }: { readonly deadAfterMs: number },
): { readonly watch: Watch; readonly dead: readonly NodeSign[] } {
  const known = before && unbroken(before, look, deadAfterMs) ? before.nodes : new Map<string, Watched>();
  const settled = look.serverUpMs >= deadAfterMs;
  const nodes = new Map<string, Watched>();
  const dead: NodeSign[] = [];
  for (const sign of look.nodes) {
    if (!MORTAL.has(sign.status)) continue;
    const seen = next(known.get(sign.incarnation), sign, look.at, settled);
    nodes.set(sign.incarnation, seen);
    const gone = seen.missingSince !== null && look.at - seen.missingSince >= SESSION_GONE_MS;
    const silent = look.at - seen.heartbeatSince >= deadAfterMs;
    if (gone || silent) dead.push(sign);
  }
  return { watch: { at: look.at, server: look.server, nodes }, dead };
}

/** After a long gap the database is the likely cause, not its nodes. */
function unbroken(before: Watch, look: Snapshot, deadAfterMs: number): boolean {
  return before.server === look.server && look.at - before.at < Math.max(deadAfterMs / 2, GAP_MS_MIN);
}

function next(seen: Watched | undefined, sign: NodeSign, at: number, settled: boolean): Watched {
  const missing = sign.locked && !sign.held && settled;
  return {
    heartbeat: sign.heartbeat,
    heartbeatSince: seen?.heartbeat === sign.heartbeat ? seen.heartbeatSince : at,
    missingSince: missing ? (seen?.missingSince ?? at) : null,
  };
}
