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

/** What one look shows of a node. */
export interface NodeSign {
  readonly incarnation: string;
  readonly status: NodeStatus;
  /** Only compared with itself: has it changed? */
  readonly heartbeat: number;
  /** Whether it keeps a session whose end is evidence. */
  readonly locked: boolean;
  /** Whether that session is there. */
  readonly held: boolean;
}

export interface Snapshot {
  /** Monotonic, of whoever looks. */
  readonly at: number;
  /** Changes when the server was started anew, which ends every session and proves nothing. */
  readonly server: string;
  readonly serverUpMs: number;
  readonly nodes: readonly NodeSign[];
}

/** What is remembered from look to look; a new term begins with `NOTHING_SEEN`. */
export interface Watch {
  readonly at: number;
  readonly server: string;
  readonly nodes: ReadonlyMap<string, Watched>;
}

interface Watched {
  readonly heartbeat: number;
  readonly heartbeatSince: number;
  /** Since when its session was missing in every look; null when it was there in the last one. */
  readonly missingSince: number | null;
}

export const NOTHING_SEEN: Watch | null = null;

/** Shorter, and a node that only has to connect again, which takes some 20 ms, is taken for dead on a busy day. */
export const SESSION_GONE_MS = 300;

/** A leader that takes back the work of one node may not look for a moment. Shorter, and it would forget what it saw. */
const GAP_MS_MIN = 500;

/** These can die. Whatever a newer version calls its states is not ours to judge. */
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

/** Between two looks that are far apart anything may have happened, to the database rather than to its nodes. */
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
