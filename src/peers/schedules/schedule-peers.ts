/**
 * A leader's requests to all members about schedules, itself included. An answer that a newer term is known ends
 * everything: this node no longer leads.
 */

import { BatonError, hasCode } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeInfo } from "../../core/node.ts";
import { majorityOf } from "../../core/schedules/schedule-takeover.ts";
import type { CallOptions, Outcome, PeerRequest } from "../../transport/transport.ts";
import type { ScheduleRequestHandler } from "./schedule-request-handler.ts";
import type { ScheduleRequestOf, ScheduleRequestName, ScheduleAnswerOf } from "./schedule-messages.ts";
import { SCHEDULE_PATH, SCHEDULE_PROTOCOL } from "./schedule-messages.ts";

export interface SchedulePeersOptions {
  readonly self: NodeName;
  /** All members, the dead ones included. */
  readonly voters: () => readonly NodeInfo[];
  readonly call: (node: NodeInfo, request: PeerRequest, options: CallOptions) => Promise<Outcome>;
  /** How many of so many members must have a note. Less than a majority and two leaders may fire the same occurrence. */
  readonly required?: (members: number) => number;
  /** Longer than a slow disk's fsync; shorter than what a caller of the API waits for an answer. */
  readonly deadlineMs?: number;
}

/**
 * - `stale`: the member knows a newer term.
 * - `refused`: the question certainly did not reach it.
 * - `unknown`: it may have been carried out.
 */
export type Answer<T> =
  | { readonly got: "answer"; readonly value: T }
  | { readonly got: "stale" | "refused" | "unknown"; readonly reason: string };

export interface PollState<T> {
  readonly members: number;
  readonly required: number;
  readonly answers: ReadonlyMap<NodeName, T>;
  readonly left: number;
}

const DEADLINE_MS = 1_500;

export class SchedulePeers {
  readonly self: NodeName;
  readonly #options: SchedulePeersOptions;
  readonly #handler: ScheduleRequestHandler;

  constructor(options: SchedulePeersOptions, handler: ScheduleRequestHandler) {
    this.self = options.self;
    this.#options = options;
    this.#handler = handler;
  }

  members(): readonly NodeName[] {
    return [...new Set([this.self, ...this.#options.voters().map(({ name }) => name)])];
  }

  async ask<Q extends ScheduleRequestName>(
    node: NodeName,
    question: Q,
    ask: ScheduleRequestOf<Q>,
    signal?: AbortSignal,
  ): Promise<Answer<ScheduleAnswerOf<Q>>> {
    if (node === this.self) return this.#askHere(question, ask);
    const info = this.#options.voters().find(({ name }) => name === node);
    if (!info) return { got: "refused", reason: `${node} is not a member` };
    if (info.url === null) return { got: "refused", reason: `${node} has no address yet` };
    const outcome = await this.#options.call(
      info,
      {
        method: "POST",
        path: `${SCHEDULE_PATH}/${question}`,
        headers: { "content-type": "application/json" },
        body: JSON.stringify(ask),
      },
      { deadlineMs: this.#options.deadlineMs ?? DEADLINE_MS, to: node, ...(signal && { signal }) },
    );
    if (outcome.outcome !== "reply") return { got: outcome.outcome, reason: `${node}: ${outcome.reason}` };
    return understood(node, question, outcome.status, outcome.body);
  }

  /**
   * Asks all members at once and answers as soon as `enough` says so; `ask` itself handles later answers. Rejects
   * with STALE_EPOCH at the first member that knows a newer term, with STORE_UNAVAILABLE when all have answered or failed.
   */
  poll<T>(
    what: string,
    ask: (node: NodeName) => Promise<Answer<T>>,
    enough: (state: PollState<T>) => boolean = ({ answers, required }) => answers.size >= required,
  ): Promise<ReadonlyMap<NodeName, T>> {
    const members = this.members();
    const required = (this.#options.required ?? majorityOf)(members.length);
    const answers = new Map<NodeName, T>();
    const reasons: string[] = [];
    let left = members.length;
    return new Promise((resolve, reject) => {
      const hear = (node: NodeName, answer: Answer<T>): void => {
        left--;
        if (answer.got === "answer") answers.set(node, answer.value);
        else if (answer.got === "stale") return reject(new BatonError("STALE_EPOCH", answer.reason));
        else reasons.push(answer.reason);
        if (enough({ members: members.length, required, answers, left })) return resolve(answers);
        if (left === 0) reject(tooFew(what, answers.size, required, members.length, reasons));
      };
      for (const node of members) {
        ask(node).then(
          (answer) => hear(node, answer),
          (error: unknown) => hear(node, { got: "unknown", reason: `${node}: ${String(error)}` }),
        );
      }
    });
  }

  async #askHere<Q extends ScheduleRequestName>(
    question: Q,
    ask: ScheduleRequestOf<Q>,
  ): Promise<Answer<ScheduleAnswerOf<Q>>> {
    try {
      return { got: "answer", value: await this.#handler.answer(question, ask) };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return { got: hasCode(error, "STALE_EPOCH") ? "stale" : "unknown", reason: `${this.self}: ${reason}` };
    }
  }
}

/** Only our own answers count. What a proxy, another version or a full disk says leaves the outcome open. */
function understood<Q extends ScheduleRequestName>(
  node: NodeName,
  question: Q,
  status: number,
  body: string,
): Answer<ScheduleAnswerOf<Q>> {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return { got: "unknown", reason: `${node}: status ${status} without a readable body` };
  }
  const { error, message } = Object(value) as { error?: unknown; message?: unknown };
  if (status === 409 && error === "STALE_EPOCH")
    return { got: "stale", reason: `${node}: ${String(message)}` };
  if (status !== 200) return { got: "unknown", reason: `${node}: status ${status}, ${String(error)}` };
  const { success, data } = SCHEDULE_PROTOCOL[question].answer.safeParse(value);
  if (success) return { got: "answer", value: data as ScheduleAnswerOf<Q> };
  return { got: "unknown", reason: `${node}: an answer of another shape` };
}

function tooFew(
  what: string,
  got: number,
  required: number,
  members: number,
  reasons: readonly string[],
): BatonError {
  return new BatonError(
    "STORE_UNAVAILABLE",
    `${what}: ${got} of ${members} nodes answered, ${required} are needed (${reasons.join("; ")})`,
    { answered: got, required, members },
  );
}
