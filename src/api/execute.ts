/**
 * Executes an operation for a caller or another node: routes the request, forwards it, or calls the handler here. Caller
 * and input have been checked by http/operation-routes.ts and peer-request-handler.ts, which also send the reply.
 */

import type { InFlight } from "../platform/in-flight.ts";
import { BatonError } from "../core/errors.ts";
import type { Tracing } from "../platform/tracing.ts";
import { arrival, type Inbound } from "../transport/hop-headers.ts";
import { forwarder, type WrittenReply } from "./forward.ts";
import type { NodeServices } from "./node-services.ts";
import { prepared } from "./schema/operation-schema.ts";
import { NO_HEADERS, type EventReply, type Input, type Operation } from "./operation.ts";
import { isController, isUpkeep, requestRouter, standing } from "./route.ts";
import type { Clock } from "../platform/clock.ts";
import type { Platform } from "../platform/platform.ts";

/** An input, with the request as it came: it is forwarded like that. */
export interface OperationInput extends Input<any, any, any> {
  readonly request: {
    readonly id: string;
    readonly method: string;
    readonly url: string;
    readonly bodyText: string;
  };
}

export type Executed = WrittenReply | EventReply;

interface OperationExecutorOptions {
  readonly services: NodeServices;
  /** Counts the changes that are being made, and refuses them once it is closed. */
  readonly inFlight: Pick<InFlight, "enter">;
  readonly tracing: Tracing;
}

const JSON_REPLY = { "content-type": "application/json; charset=utf-8" } as const;

export type OperationExecutor = ReturnType<typeof operationExecutor>;

export function operationExecutor(
  { clock, identity }: Pick<Platform, "clock" | "identity">,
  { services, inFlight, tracing }: OperationExecutorOptions,
) {
  const router = requestRouter(services);
  const forwarding = services.peers ? forwarder(services, services.peers, tracing) : null;
  const lateBy = requestDelay(clock);

  /** For what is done here. Throws the refusal, or gives the function that counts it as done. */
  function enter(operation: Operation): () => void {
    if (isUpkeep(operation) || !operation.mutates) return nothing;
    const leave = inFlight.enter();
    if (leave !== null) return leave;
    if (isController(operation)) return nothing;
    // A job that is kept here alone can be cancelled nowhere else, and one that is stuck would hold up the drain.
    if (services.peers && typeof operation.target === "function") return nothing;
    throw new BatonError("DRAINING", "this node is draining and takes no more changes; try another node");
  }

  return {
    services,

    /** How a request got here that a node has sent. Takes what nodes say to each other out of the query. */
    inboundFrom: (
      from: string,
      query: Record<string, unknown>,
      headers: Input<any, any, any>["headers"],
    ): Inbound => arrival(from, query, headers, { clock, lateBy }),

    nodeHeaders(): Record<"x-baton-node" | "x-baton-role" | "x-baton-epoch", string> {
      const { role, leader_epoch } = standing(services);
      return {
        "x-baton-node": identity.name,
        "x-baton-role": role,
        "x-baton-epoch": String(leader_epoch ?? 0),
      };
    },

    async execute(operation: Operation, input: OperationInput): Promise<Executed> {
      const { inbound } = input;
      router.admit(operation, inbound);
      const target = typeof operation.target === "function" ? operation.target(input) : operation.target;
      const decision = router.decide(target, operation.mutates, inbound);
      if (forwarding !== null && (decision.do === "forward" || decision.do === "place")) {
        // What another node does is waited for like the rest, and not refused by a node that drains.
        const leave = (operation.mutates && inFlight.enter()) || nothing;
        try {
          if (decision.do === "forward")
            return await forwarding.forward(operation, decision.to, target, input);
          const placed = await forwarding.place(operation, input);
          if (placed !== null) return placed;
        } finally {
          leave();
        }
      }
      const leave = enter(operation);
      try {
        if (decision.do === "refuse") throw router.refusal(decision.code, target, inbound);
        return reply(operation, await operation.handler(services, input));
      } finally {
        leave();
      }
    },
  };
}

function reply(operation: Operation, answer: Awaited<ReturnType<Operation["handler"]>>): Executed {
  if ("events" in answer) return answer;
  const { status, body } = answer;
  const headers: Record<string, string> =
    answer.headers === NO_HEADERS || !answer.headers ? JSON_REPLY : { ...JSON_REPLY, ...answer.headers };
  const isText = typeof body === "string" && headers["content-type"]!.startsWith("text/");
  return { status, headers, body: isText ? body : prepared(operation).write(status, body) };
}

function nothing(): void {}

/** Longer, and a sender whose clock was set back is taken for late for longer; shorter, and a quiet hour forgets too much. */
const GENERATION_MS = 60_000;

interface Seen {
  since: number;
  /** The least of (arrival by our wall clock) - (departure by theirs). */
  now: number;
  before: number;
}

/**
 * How late a request is. Clocks differ, so only what the way takes longer than the shortest of the last minutes was spent
 * waiting: in a buffer of the network, or of a process that stood still.
 */
export function requestDelay(clock: Clock): (from: string, sentAt: number) => number {
  const senders = new Map<string, Seen>();
  return (from, sentAt) => {
    const way = clock.now() - sentAt;
    const at = clock.monotonic();
    const seen = senders.get(from);
    if (!seen) {
      senders.set(from, { since: at, now: way, before: way });
      return 0;
    }
    // Only when something arrives: after a long pause the requests that waited are measured against what was before it.
    if (at - seen.since >= GENERATION_MS) {
      seen.since = at;
      seen.before = seen.now;
      seen.now = way;
    } else if (way < seen.now) seen.now = way;
    return way - Math.min(seen.now, seen.before);
  };
}
