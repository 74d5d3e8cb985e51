/**
 * Passes a request on to the node that it belongs to, and what that node answers back.
 *
 * An answer is passed on as it is, refusals too. One that did not come, or was cut short, becomes an error of this node: 503 with
 * the owner's name when it cannot be reached, 504 when it was too slow. Never a part of an answer as if it were the whole.
 */

import { BatonError } from "../core/errors.ts";
import type { NodeInfo } from "../core/node.ts";
import type { Target } from "../core/route.ts";
import type { Clock } from "../platform/clock.ts";
import type { Failure, PeerRequest, ReplyHead } from "../transport/transport.ts";
import { ownerUnreachable } from "./decide.ts";
import { PEER_REFUSAL_HEADER, hopHeaders, hopPath } from "../transport/hop.ts";
import type { Peers } from "../transport/hop.ts";

export interface Passing {
  readonly to: NodeInfo;
  readonly target: Target;
  readonly mutates: boolean;
  readonly method: string;
  readonly path: string;
  /** Those that may be passed on. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly deadlineMs: number;
}

export interface PassedBack {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | AsyncIterable<Buffer>;
}

/** A node that was not heard of lately is tried all the same, but nobody should wait long for it. */
const SUSPECT_MS = 1_000;

export class Forwarder {
  readonly #peers: Peers;
  readonly #clock: Clock;

  constructor(peers: Peers, clock: Clock) {
    this.#peers = peers;
    this.#clock = clock;
  }

  /** With the whole answer in memory: the cheaper way for small ones. */
  async pass(passing: Passing): Promise<PassedBack> {
    const { url, deadlineMs, request } = this.#prepare(passing);
    const sentAt = this.#clock.monotonic();
    const outcome = await this.#peers.call(url, request, { deadlineMs, to: passing.to.name });
    if (outcome.outcome !== "reply") throw this.#failure(outcome, passing, sentAt, deadlineMs);
    checkReply(outcome, passing);
    return outcome;
  }

  /** The deadline is for the head; what follows is read as it comes. */
  async stream(passing: Passing, signal: AbortSignal): Promise<PassedBack> {
    const { url, deadlineMs, request } = this.#prepare(passing);
    const sentAt = this.#clock.monotonic();
    const outcome = await this.#peers.stream(url, request, {
      headMs: deadlineMs,
      to: passing.to.name,
      signal,
    });
    if (outcome.outcome !== "reply") throw this.#failure(outcome, passing, sentAt, deadlineMs);
    checkReply(outcome, passing);
    return outcome;
  }

  #prepare(passing: Passing): { url: string; deadlineMs: number; request: PeerRequest } {
    const { to, method, headers, body } = passing;
    if (to.url === null) throw unreachable(passing, "it has not told its address yet");
    if (to.status === "dead") throw unreachable(passing, "it is dead");
    const deadlineMs = to.alive ? passing.deadlineMs : Math.min(passing.deadlineMs, SUSPECT_MS);
    const request: PeerRequest = {
      method: (method === "HEAD" ? "GET" : method) as PeerRequest["method"],
      path: hopPath(passing.path, { sentAt: Math.floor(this.#clock.now()) }),
      headers: hopHeaders(headers, deadlineMs, this.#peers),
      ...(body !== "" && { body }),
    };
    return { url: to.url, deadlineMs, request };
  }

  #failure(failure: Failure, passing: Passing, sentAt: number, deadlineMs: number): BatonError {
    const late = this.#clock.monotonic() - sentAt >= deadlineMs;
    const maybeDone = failure.outcome === "unknown" && passing.mutates;
    const details = maybeDone ? { outcome: "unknown" } : {};
    if (failure.outcome === "unknown" && late && passing.to.alive) {
      return new BatonError(
        "DEADLINE",
        `${passing.to.name} did not answer within ${Math.round(deadlineMs)} ms${maybeDone ? "; it may have carried the request out" : ""}`,
        { owner: passing.to.name, ...details },
      );
    }
    return unreachable(passing, failure.reason, details);
  }
}

function unreachable({ to, target }: Passing, why: string, details: object = {}): BatonError {
  if (target.at !== "leader") return ownerUnreachable(to.name, why, { ...details });
  return new BatonError("NO_LEADER", `the leader (${to.name}) cannot be reached from here: ${why}`, {
    leader_id: to.name,
    leader_url: to.url,
    ...details,
  });
}

/** What a peer says about us, or about somewhere else, is no answer to our caller. */
function checkReply(head: ReplyHead, passing: Passing): void {
  const refused = head.headers[PEER_REFUSAL_HEADER];
  if (refused !== undefined) throw unreachable(passing, `it does not believe us (${refused})`);
  if (head.status >= 300 && head.status < 400 && head.status !== 304) {
    throw new BatonError(
      "BAD_PEER_REPLY",
      `${passing.to.name} answered with a redirect, which is not followed`,
      {
        owner: passing.to.name,
      },
    );
  }
}
