/**
 * Executes an operation for a caller or another node: routes the request, forwards it, or calls the handler here. Caller
 * and input have been checked by http/operation-routes.ts and peer-request-handler.ts, which also send the reply.
 */

import type { InFlight } from "../platform/in-flight.ts";
import { BatonError } from "../core/errors.ts";
import { noTracing, type Tracing } from "../platform/tracing.ts";
import { arrival, type Inbound } from "../transport/hop-headers.ts";
import { Forwarder, type WrittenReply } from "./forward.ts";
import type { NodeServices } from "./node-services.ts";
import { prepared } from "./schema/operation-schema.ts";
import { NO_HEADERS, type EventReply, type Input, type Operation } from "./operation.ts";
import { isController, isUpkeep, RequestRouter, standing } from "./route.ts";
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
  readonly inFlight?: Pick<InFlight, "enter">;
  readonly tracing?: Tracing;
}

const JSON_REPLY = { "content-type": "application/json; charset=utf-8" } as const;

export class OperationExecutor {
  readonly services: NodeServices;
  readonly #platform: Pick<Platform, "clock" | "identity">;
  readonly #inFlight: Pick<InFlight, "enter"> | null;
  readonly #router: RequestRouter;
  readonly #forwarder: Forwarder | null;
  readonly #lateness: RequestDelay;

  constructor(
    platform: Pick<Platform, "clock" | "identity">,
    { services, inFlight, tracing = noTracing }: OperationExecutorOptions,
  ) {
    this.#platform = platform;
    this.services = services;
    this.#inFlight = inFlight ?? null;
    this.#router = new RequestRouter(services);
    this.#forwarder = services.peers ? new Forwarder(services, services.peers, tracing) : null;
    this.#lateness = new RequestDelay(platform.clock);
  }

  /** How a request got here that a node has sent. Takes what nodes say to each other out of the query. */
  inboundFrom(
    from: string,
    query: Record<string, unknown>,
    headers: Input<any, any, any>["headers"],
  ): Inbound {
    return arrival(from, query, headers, {
      clock: this.#platform.clock,
      lateBy: (sender, sentAt) => this.#lateness.by(sender, sentAt),
    });
  }

  nodeHeaders(): Record<"x-baton-node" | "x-baton-role" | "x-baton-epoch", string> {
    const { role, leader_epoch } = standing(this.services);
    return {
      "x-baton-node": this.#platform.identity.name,
      "x-baton-role": role,
      "x-baton-epoch": String(leader_epoch ?? 0),
    };
  }

  async execute(operation: Operation, input: OperationInput): Promise<Executed> {
    const { inbound } = input;
    this.#router.admit(operation, inbound);
    const target = typeof operation.target === "function" ? operation.target(input) : operation.target;
    const decision = this.#router.decide(target, operation.mutates, inbound);
    const forwarder = this.#forwarder;
    if (forwarder !== null && (decision.do === "forward" || decision.do === "place")) {
      const leave = this.#pass(operation);
      try {
        if (decision.do === "forward") return await forwarder.forward(operation, decision.to, target, input);
        const placed = await forwarder.place(operation, input);
        if (placed !== null) return placed;
      } finally {
        leave();
      }
    }
    const leave = this.#enter(operation);
    try {
      if (decision.do === "refuse") throw this.#router.refusal(decision.code, target, inbound);
      return reply(operation, await operation.handler(this.services, input));
    } finally {
      leave();
    }
  }

  /** For what is done here. Throws the refusal, or gives the function that counts it as done. */
  #enter(operation: Operation): () => void {
    if (isUpkeep(operation) || !operation.mutates || this.#inFlight === null) return nothing;
    const leave = this.#inFlight.enter();
    if (leave !== null) return leave;
    if (isController(operation)) return nothing;
    // A job that is kept here alone can be cancelled nowhere else, and one that is stuck would hold up the drain.
    if (this.services.peers && typeof operation.target === "function") return nothing;
    throw new BatonError("DRAINING", "this node is draining and takes no more changes; try another node");
  }

  /** For what another node does: waited for like the rest, and not refused by a node that drains. */
  #pass(operation: Operation): () => void {
    return (operation.mutates && this.#inFlight?.enter()) || nothing;
  }
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
export class RequestDelay {
  readonly #clock: Clock;
  readonly #senders = new Map<string, Seen>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  by(from: string, sentAt: number): number {
    const way = this.#clock.now() - sentAt;
    const at = this.#clock.monotonic();
    const seen = this.#senders.get(from);
    if (!seen) {
      this.#senders.set(from, { since: at, now: way, before: way });
      return 0;
    }
    // Only when something arrives: after a long pause the requests that waited are measured against what was before it.
    if (at - seen.since >= GENERATION_MS) {
      seen.since = at;
      seen.before = seen.now;
      seen.now = way;
    } else if (way < seen.now) seen.now = way;
    return way - Math.min(seen.now, seen.before);
  }
}
