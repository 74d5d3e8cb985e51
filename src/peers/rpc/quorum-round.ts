/**
 * One round of requests to all members, this node included: all are asked at the same time, and the round ends as soon
 * as the answers decide, so that a silent member costs nothing. Callers differ in what they ask and how they judge the
 * answers. With `againMs` requests are repeated, and must be repeatable.
 */

import { majorityOf } from "../../core/leadership/bully.ts";
import { BatonError } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import type { Clock } from "../../platform/clock.ts";
import type { PeerAnswer } from "./peer-rpc.ts";

export interface RoundState<Value> {
  readonly answers: ReadonlyMap<NodeName, Value>;
  /** Why they were certainly not reached, or the error that they answered. */
  readonly refused: ReadonlyMap<NodeName, string>;
  /** Why their answer did not come. */
  readonly unknown: ReadonlyMap<NodeName, string>;
  /** Why this node does not lead any more, if a member knows a newer term. */
  readonly stale: string | null;
  /** How many have not answered, and may. */
  readonly left: number;
  readonly over: boolean;
}

export interface RoundOptions<Value, Verdict> {
  readonly members: readonly NodeName[];
  /**
   * Calls under way when the round is decided go on, because cancelling one would cost the connection. A rejection
   * counts as unknown.
   */
  readonly ask: (node: NodeName, leftMs: number) => Promise<PeerAnswer<Value>>;
  readonly judge: (round: RoundState<Value>) => Verdict | null;
  /** Ends the round; without it, it ends when all have answered or failed. */
  readonly limit?: {
    readonly clock: Clock;
    readonly deadlineMs: number;
    /** A member that has not answered by then is asked again, so that one lost message does not decide. */
    readonly againMs: number;
    /** Asked only once: it loses no messages. */
    readonly self: NodeName;
  };
}

/** Null when all have answered, or the time is over, and nothing was decided. */
export function quorumRound<Value, Verdict>(o: RoundOptions<Value, Verdict>): Promise<Verdict | null> {
  const { members, ask, judge, limit } = o;
  const answers = new Map<NodeName, Value>();
  const refused = new Map<NodeName, string>();
  const unknown = new Map<NodeName, string>();
  let stale: string | null = null;
  const decided = Promise.withResolvers<Verdict | null>();
  const ended = new AbortController();
  const consider = (over: boolean): void => {
    if (ended.signal.aborted) return;
    const left = members.length - answers.size - refused.size - unknown.size;
    const last = over || (!limit && left === 0);
    const verdict = judge({ answers, refused, unknown, stale, left, over: last });
    if (verdict !== null || last) decided.resolve(verdict);
  };
  const hear = (node: NodeName, answer: PeerAnswer<Value>): void => {
    if (ended.signal.aborted || answers.has(node)) return;
    // A call that was refused is not made doubtful by a later one.
    if (answer.got === "unknown" && !answer.error && refused.has(node)) return;
    refused.delete(node);
    unknown.delete(node);
    if (answer.got === "answer") answers.set(node, answer.value);
    else if (answer.got === "refused" || (answer.got === "unknown" && answer.error))
      refused.set(node, answer.reason);
    else unknown.set(node, answer.reason);
    if (answer.got === "stale") stale ??= answer.reason;
    consider(false);
  };
  const askOne = (node: NodeName, leftMs: number): void => {
    ask(node, leftMs).then(
      (answer) => hear(node, answer),
      (error: unknown) => hear(node, { got: "unknown", reason: `${node}: ${String(error)}` }),
    );
  };
  const insist = async (node: NodeName, { clock, deadlineMs, againMs }: NonNullable<typeof limit>) => {
    const endsAt = clock.monotonic() + deadlineMs;
    for (;;) {
      const leftMs = endsAt - clock.monotonic();
      if (ended.signal.aborted || leftMs <= 0 || answers.has(node)) return;
      askOne(node, leftMs);
      await clock.sleep(againMs, ended.signal);
    }
  };
  const callOff = limit?.clock.after(limit.deadlineMs, () => consider(true));
  for (const node of members)
    if (limit && node !== limit.self) void insist(node, limit);
    else askOne(node, limit?.deadlineMs ?? Infinity);
  return decided.promise.finally(() => {
    ended.abort();
    callOff?.();
  });
}

export interface MajorityOptions<Value> extends Pick<RoundOptions<Value, unknown>, "members" | "ask"> {
  /** Begins the message of the error. */
  readonly what: string;
  readonly required?: (members: number) => number;
  /** Whether the answers suffice, if their number alone does not tell. */
  readonly enough?: (
    round: RoundState<Value> & { readonly members: number; readonly required: number },
  ) => boolean;
}

/**
 * The answers of a majority. Rejects with STALE_EPOCH at the first member that knows a newer term, with
 * STORE_UNAVAILABLE when all have answered or failed.
 */
export async function askMajority<Value>(o: MajorityOptions<Value>): Promise<ReadonlyMap<NodeName, Value>> {
  const { members, ask, what } = o;
  const required = (o.required ?? majorityOf)(members.length);
  const enough = o.enough ?? (({ answers }) => answers.size >= required);
  const outcome = await quorumRound<Value, ReadonlyMap<NodeName, Value> | BatonError>({
    members,
    ask,
    judge: (round) => {
      const { answers, refused, unknown, stale, over } = round;
      if (stale !== null) return new BatonError("STALE_EPOCH", stale);
      if (enough({ ...round, members: members.length, required })) return answers;
      if (!over) return null;
      const reasons = [...refused.values(), ...unknown.values()].join("; ");
      return new BatonError(
        "STORE_UNAVAILABLE",
        `${what}: ${answers.size} of ${members.length} nodes answered, ${required} are needed (${reasons})`,
        { answered: answers.size, required, members: members.length },
      );
    },
  });
  if (outcome instanceof BatonError) throw outcome;
  return outcome!;
}
