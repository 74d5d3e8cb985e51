/** Keeps a connection to a peer open, and reports each loss and the result of each new attempt. */

import type { NodeName } from "../../core/ids.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import type { MeshConnection } from "./mesh-connection.ts";
import type { PeerLink, Reached } from "./peer-link.ts";

/**
 * The connection to a peer was lost. `again` is what a new attempt found:
 *
 * - `open`: only the connection was lost. `restarted`: another incarnation of the node answers, so the former is over.
 * - `refusing`: its machine reports that no process listens. The process has ended.
 * - `silent`: no answer, which proves nothing. `denied`: one of the two nodes does not accept the other.
 */
export interface PeerBreak {
  readonly again: "open" | "restarted" | "refusing" | "silent" | "denied";
}

export interface WatchOptions {
  readonly link: PeerLink;
  readonly name: NodeName | null;
  readonly current: () => MeshConnection | null;
  readonly clock: Clock;
  readonly random: Random;
}

/** A machine on the same network refuses within a round trip; evidence is not awaited for longer. */
const EVIDENCE_MS = 250;
const BACK_OFF_MS = 100;
const BACK_OFF_MS_MAX = 5_000;

export async function* watchPeer(
  options: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<PeerBreak, void, void> {
  const { link, name, current, clock, random } = options;
  let incarnation: string | null = null;
  let reported: PeerBreak["again"] | null = null;
  for (let failures = 0; !signal.aborted;) {
    const connection = current();
    if (connection) {
      failures = 0;
      reported = null;
      incarnation = connection.peer.incarnation;
      await overOr(connection, signal);
      // Another connection to the same peer took over: nothing is lost.
      if (signal.aborted || current()) continue;
    }
    const attempt = link.reach(name);
    const found = await soon(attempt, clock, signal);
    if (signal.aborted) return;
    const again = evidence(found, incarnation);
    if (again !== reported && (again !== "open" || connection)) {
      reported = again;
      yield { again };
    }
    const reached = await attempt;
    // A connection that was accepted and cut at once does not count.
    if (reached.state === "open" && current()) continue;
    const later = Math.min(BACK_OFF_MS * 2 ** failures++, BACK_OFF_MS_MAX);
    await clock.sleep(later * (0.5 + random.chance() / 2), signal);
  }
}

async function overOr(connection: MeshConnection, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<void>();
  const abort = (): void => aborted.resolve();
  signal.addEventListener("abort", abort, { once: true });
  await Promise.race([connection.over, aborted.promise]);
  signal.removeEventListener("abort", abort);
}

async function soon(attempt: Promise<Reached>, clock: Clock, signal: AbortSignal): Promise<Reached | null> {
  const enough = new AbortController();
  const off = (): void => enough.abort();
  signal.addEventListener("abort", off, { once: true });
  const found = await Promise.race([attempt, clock.sleep(EVIDENCE_MS, enough.signal).then(() => null)]);
  enough.abort();
  signal.removeEventListener("abort", off);
  return found;
}

function evidence(found: Reached | null, incarnation: string | null): PeerBreak["again"] {
  if (found?.state !== "open") return found?.state ?? "silent";
  return incarnation !== null && found.connection.peer.incarnation !== incarnation ? "restarted" : "open";
}
