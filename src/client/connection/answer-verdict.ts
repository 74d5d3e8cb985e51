/**
 * What an answer, or a missing answer, means for a call that may be sent to another node, and the error of a call that
 * no node answered.
 *
 *   take    it is the caller's answer, also if it is a refusal: another node would give the same
 *   next    this node cannot answer, and another may
 *   pause   the whole cluster is overloaded; calling the next node at once would make it worse
 */

import { CallError, jsonOf, type Refusal } from "../client-error.ts";
import type { Answer, Call } from "./connection.ts";

export interface Verdict {
  readonly do: "take" | "next" | "pause";
  /** Whether the request may have been carried out all the same. */
  readonly maybeDone: boolean;
  /** Whether it is worth another round after a while, when no node was better. */
  readonly passes: boolean;
  readonly afterMs: number;
  readonly hints: readonly string[];
  /** It works, but does not lead. */
  readonly standby: boolean;
}

const NEXT: Verdict = { do: "next", maybeDone: false, passes: false, afterMs: 0, hints: [], standby: false };
const TAKE: Verdict = { ...NEXT, do: "take" };

/** Refusals with 5xx by which a node says that it has done nothing; of other ones that is not known. */
const NOTHING_DONE: ReadonlySet<unknown> = new Set([
  "DRAINING",
  "CLUSTER_FORMING",
  "STOPPED",
  "NO_LEADER",
  "DEADLINE",
  "owner_node_unreachable",
]);
/** What goes by within seconds. A dead owner or a fault of ours may last, and whoever waits wants to hear of it. */
const PASSES: ReadonlySet<unknown> = new Set([
  "DRAINING",
  "CLUSTER_FORMING",
  "STOPPED",
  "NO_LEADER",
  "STORE_UNAVAILABLE",
]);
/** Two nodes disagree on who is who; a third one does not help. */
const LOOP = 508;

export function judgeAnswer(answer: Answer): Verdict {
  const { status, retryAfterMs } = answer;
  const afterMs = retryAfterMs ?? 0;
  if (status === 409) {
    const { error, leader_url: leader } = refusalIn(answer);
    if (error !== "NOT_LEADER") return TAKE;
    return { ...NEXT, passes: true, hints: texts([leader]), standby: true };
  }
  if (status === 421) return { ...NEXT, hints: texts(refusalIn(answer).gateways) };
  if (status === 408) return { ...NEXT, passes: true };
  if (status === 429) return { ...NEXT, do: "pause", passes: true, afterMs };
  if (status < 500 || status === LOOP) return TAKE;
  const { error, outcome } = refusalIn(answer);
  const maybeDone = outcome === "unknown" || !NOTHING_DONE.has(error);
  return { ...NEXT, maybeDone, passes: PASSES.has(error), afterMs };
}

/** `wasThere`: some node has answered before. In a round over all nodes one that is not a Baton node is passed over as well. */
export function judgeFailure(error: CallError, wasThere: boolean, inRound = false): Verdict {
  const { code } = error;
  const lost = code === "UNREACHABLE" || code === "TIMEOUT" || (inRound && code === "BAD_REPLY");
  return lost ? { ...NEXT, maybeDone: error.maybeDone, passes: wasThere } : TAKE;
}

function refusalIn(answer: Answer): Refusal {
  return jsonOf(answer) ?? {};
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

export function unanswered(tried: {
  readonly call: { readonly timeoutMs: number };
  readonly error: CallError | null;
  readonly maybeDone: boolean;
}): CallError {
  const { call, error, maybeDone } = tried;
  if (error === null) {
    return new CallError("TIMEOUT", `no node answered within ${call.timeoutMs} ms`, { maybeDone });
  }
  if (error.maybeDone === maybeDone) return error;
  const { status, body, cause, systemCode } = error;
  const known = { ...(status !== null && { status }), ...(systemCode !== null && { systemCode }) };
  return new CallError(error.code, error.message, { ...known, body, cause, maybeDone });
}

export function outcomeUnknown({ method, path }: Call, cause: CallError): CallError {
  return new CallError(
    "OUTCOME_UNKNOWN",
    `${method} ${path} may have been carried out, and is not safe to repeat: ${cause.message}`,
    { cause, maybeDone: true },
  );
}

/** Of a round in which no node was the leader; `reasons` is what each of them said. */
export function noLeader(reasons: ReadonlyMap<string, CallError>, maybeDone: boolean): CallError {
  const each = [...reasons].map(([url, { message }]) => `${url}: ${message}`).join("; ");
  return [...reasons.values()].some(({ status }) => status !== null)
    ? new CallError("NO_LEADER", `no node leads at the moment (${each})`, { maybeDone })
    : new CallError("UNREACHABLE", `no node can be reached (${each})`, { maybeDone });
}
