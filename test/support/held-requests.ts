/**
 * Watches the connection to a peer over a transport that cannot watch one, as those in memory: one long request is kept open at
 * the peer, and its end shows that the peer's process has ended.
 */

import type { WatchPeer } from "../../src/peers/bully/election/leader-watch.ts";
import type { Clock } from "../../src/platform/clock.ts";
import type { PeerHandler, Transport } from "../../src/transport/transport.ts";

const PATH = "/peer/hold";
const HOLD_MS = 20_000;
const HOLD_MARGIN_MS = 5_000;
const PAUSE_MS = 500;

export function watchByRequest(transport: Transport, clock: Clock): WatchPeer {
  return async function* (address, signal, name) {
    while (!signal.aborted) {
      const options = { deadlineMs: HOLD_MS + HOLD_MARGIN_MS, to: name, signal };
      const outcome = await transport.call(address, { method: "GET", path: PATH }, options);
      if (signal.aborted) return;
      if (outcome.outcome === "reply" && outcome.status === 200) continue;
      yield "broken";
      await clock.sleep(PAUSE_MS, signal);
    }
  };
}

/** Keeps the requests of `watchByRequest` open; all others go to the handler. */
export function holdRequests(handler: PeerHandler, clock: Clock): PeerHandler {
  return async (request) => {
    if (request.path !== PATH) return handler(request);
    await clock.sleep(HOLD_MS, request.signal);
    return { status: 200 };
  };
}
