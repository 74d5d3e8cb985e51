/** Schedules that code declares, where only the leader changes schedules: a node hands its own over to the leader, at any time and again. */

import { BatonError } from "../../core/errors.ts";
import type { DeclaredSchedule } from "../../core/schedules/declared-schedules.ts";
import type { Leadership } from "../../leadership/coordination.ts";
import type { PeerHandlers } from "../rpc/peer-rpc.ts";
import { chunks } from "../rpc/schedule-messages.ts";
import type { Replicas } from "./replicas.ts";

/** Each schedule that changes takes a round among the members. */
const DEADLINE_MS = 15_000;

type Take = (version: string, declared: readonly DeclaredSchedule[]) => Promise<void>;

export interface DeclarationRelay {
  readonly declare: Take;
  readonly handlers: Pick<PeerHandlers, "declare">;
}

/** `take` writes them at this node while it leads. */
export function declarationRelay(
  replicas: Pick<Replicas, "self" | "askOther">,
  leadership: Pick<Leadership, "held" | "current">,
  take: Take,
): DeclarationRelay {
  return {
    async declare(version, declared) {
      if (leadership.held()) return take(version, declared);
      const leader = leadership.current()?.leader;
      if (leader === undefined || leader === replicas.self)
        throw new BatonError("NO_LEADER", "the schedules of the code wait for a leader, who stores them");
      for (const piece of chunks(declared)) {
        const request = { version, declared: piece };
        const answer = await replicas.askOther(leader, "declare", request, { deadlineMs: DEADLINE_MS });
        if (answer.got !== "answer")
          throw new BatonError(
            "NO_LEADER",
            `the leader did not take the schedules of the code: ${answer.reason}`,
          );
      }
    },
    handlers: {
      declare: async ({ version, declared }) => {
        await take(version, declared);
        return {};
      },
    },
  };
}
