/** Keeps a connection to a peer open, and reports each loss and the result of each new attempt. */

import type { NodeName } from "../../core/ids.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import type { MeshConnection } from "./mesh-connection.ts";
import type { PeerLink, Reached } from "./peer-link.ts";

/**
 * The connection to a peer is not there. `again` is what a new attempt found:
 *
 * - `open`: it was only the connection. `restarted`: another life of the same node answers, so the one before is over.
 * - `refusing`: its machine says that nobody listens. The process is gone.
 * - `silent`: nothing, which proves nothing. `denied`: a node that does not believe us, or we not it.
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

/** A machine on the same network refuses within a round trip; whoever waits for evidence does not wait longer. */
const EVIDENCE_MS = 250;
const BACK_OFF_MS = 100;
const BACK_OFF_MS_MAX = 5_000;

export async function* watchPeer(
  options: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<PeerBreak, void, void> {
  const { link, name, current, clock, random } = options;
  let life: string | null = null;
  let told: PeerBreak["again"] | null = null;
  for (let failures = 0; !signal.aborted;) {
    const connection = current();
    if (connection) {
      failures = 0;
      told = null;
      life = connection.peer.incarnation;
      await overOr(connection, signal);
      // Another connection to the same peer took over: nothing is lost.
      if (signal.aborted || current()) continue;
    }
    const attempt = link.reach(name);
    const found = await soon(attempt, clock, signal);
    if (signal.aborted) return;
    const again = evidence(found, life);
    // Something answers in plain HTTP: there is no connection to hold, and heartbeats have to do.
    if (again !== null && again !== told && (again !== "open" || connection)) {
      told = again;
      yield { again };
    }
    const reached = await attempt;
    // One that is taken and cut again at once is as good as none.
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

function evidence(found: Reached | null, life: string | null): PeerBreak["again"] | null {
  if (found === null) return "silent";
  switch (found.state) {
    case "open":
      return life !== null && found.connection.peer.incarnation !== life ? "restarted" : "open";
    case "cut":
      return "silent";
    case "plain":
      return null;
    case "refusing":
    case "silent":
    case "denied":
      return found.state;
  }
}
