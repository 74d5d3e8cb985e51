/**
 * The pauses of queues in a cluster where every node has its own store: notes in the same table as the schedules.
 *
 * Guaranteed: a pause that was acknowledged is stored by a majority under the term of the leader. A node that returns has
 * it before its worker starts, if it reaches a majority; else it goes on with the pauses that it knows. A change without
 * a majority is refused; what a minority has stored of it may still take effect, and the error says so.
 */

import type { Leadership } from "../../leadership/coordination.ts";
import { BatonError, type ErrorCode } from "../../core/errors.ts";
import { queueNote } from "../../core/schedules/schedule-register.ts";
import type { ReplyOf } from "../rpc/peer-routes.ts";
import type { PeerAnswer, PeerHandlers } from "../rpc/peer-rpc.ts";
import { quorumRound } from "../rpc/quorum-round.ts";
import type { ReplicatedSchedules } from "./replicated-schedules.ts";
import type { ReplicaStore } from "./schedule-handlers.ts";

const WHAT_TO_DO =
  "a pause needs a leader and a majority of the nodes: bring nodes back and try again, or drain the nodes that must stop";

/** The leader may have to take the table over first: each of its rounds takes 1.5 s at most. */
const LEADER_MS = 6_000;

export class QueuePauses {
  readonly handlers: Pick<PeerHandlers, "pause">;
  readonly #table: Pick<ReplicatedSchedules, "change" | "replicas">;
  readonly #leadership: Pick<Leadership, "held" | "current">;
  readonly #store: ReplicaStore;

  constructor(
    table: Pick<ReplicatedSchedules, "change" | "replicas">,
    leadership: Pick<Leadership, "held" | "current">,
    store: ReplicaStore,
  ) {
    this.#table = table;
    this.#leadership = leadership;
    this.#store = store;
    this.handlers = {
      pause: async ({ queue, paused }) => {
        await this.#change(queue, paused);
        return {};
      },
    };
  }

  /** Resolves when a majority has stored it. The leader does it; any node can be asked. */
  async setPaused(queue: string, paused: boolean): Promise<void> {
    if (this.#leadership.held()) return this.#change(queue, paused);
    const leader = this.#leadership.current()?.leader;
    if (leader === undefined || leader === this.#table.replicas.self)
      throw new BatonError("NO_LEADER", `queue ${queue} was not changed, as no node leads; ${WHAT_TO_DO}`);
    const answer = await this.#table.replicas.askOther(
      leader,
      "pause",
      { queue, paused },
      { deadlineMs: LEADER_MS },
    );
    if (answer.got !== "answer") throw refusal(queue, answer);
  }

  /** Asks the others for the pauses that this node has missed. Before its worker starts. */
  async collect(): Promise<void> {
    const { replicas } = this.#table;
    const members = replicas.members();
    if (members.length === 1) return;
    const answers = await quorumRound<ReplyOf<"pauses">, readonly ReplyOf<"pauses">[]>({
      members,
      ask: (node) => replicas.ask(node, "pauses", {}),
      judge: ({ answers: found, over }) => {
        // One that has lost its disk may have lost a pause with it; one that was away from the cluster has not heard of it.
        const sound = [...found].filter(([node, state]) => {
          const { blank, returned } = replicas.witness(node, state);
          return !blank && !returned;
        });
        return over || sound.length >= replicas.required(members.length) ? [...found.values()] : null;
      },
    });
    const notes = answers!.flatMap((answer) => answer.notes);
    if (notes.length > 0) await this.#store.scheduleNotes.learn(notes);
  }

  async #change(queue: string, paused: boolean): Promise<void> {
    try {
      // Also when it is paused already: a leader that is over, and does not know it, must not acknowledge it.
      await this.#table.change(queueNote(queue, paused, 0).name, (_note, now) => ({
        draft: queueNote(queue, paused, now),
        result: null,
      }));
    } catch (error) {
      if (error instanceof BatonError) throw unchanged(queue, error.code, error.message);
      throw error;
    }
  }
}

function refusal(queue: string, answer: Exclude<PeerAnswer<unknown>, { got: "answer" }>): BatonError {
  if (answer.got === "unknown" && answer.error)
    return unchanged(queue, answer.error.code, answer.error.message);
  const certain = answer.got === "unknown" ? "it is unknown whether" : "it is certain that nothing of";
  return new BatonError(
    "NO_LEADER",
    `the leader did not answer, and ${certain} queue ${queue} was changed (${answer.reason}); ${WHAT_TO_DO}`,
  );
}

/** Whatever ended the change: the caller has to know that it did not take place, and what to do. */
function unchanged(queue: string, code: string, message: string): BatonError {
  const ended: readonly string[] = ["NOT_LEADER", "STALE_EPOCH", "NO_LEADER"] satisfies ErrorCode[];
  if (ended.includes(code))
    return new BatonError("NO_LEADER", `queue ${queue} was not changed: ${message}; ${WHAT_TO_DO}`);
  return new BatonError(
    "STORE_UNAVAILABLE",
    `queue ${queue} was not changed for the cluster, though single nodes may have stored it: ${message}; ${WHAT_TO_DO}`,
  );
}
