/** A leader's requests about schedules to all members, itself included. */

import { hasCode, reasonOf } from "../../core/errors.ts";
import { majorityOf } from "../../core/leadership/bully.ts";
import type { Witness } from "../../core/schedules/schedule-takeover.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeInfo } from "../../core/node.ts";
import type { CallOptions, Transport } from "../../transport/transport.ts";
import type { PeerRoute, ReplyOf, RequestOf } from "../rpc/peer-routes.ts";
import { PeerClient, type PeerAnswer } from "../rpc/peer-rpc.ts";
import { askMajority, type MajorityOptions } from "../rpc/quorum-round.ts";
import type { ScheduleHandlers, ScheduleRoute } from "./schedule-handlers.ts";

export interface ReplicasOptions {
  /** All members, the dead ones included. */
  readonly voters: () => readonly Pick<NodeInfo, "name" | "url">[];
  /** Which membership of that node this is, where members come and go: see `entryOf` in core/leadership/peer-set.ts. */
  readonly entry?: (member: NodeName) => string;
  readonly call: Transport["call"];
  /** How many of so many members must have a note. Less than a majority and two leaders may fire the same occurrence. */
  readonly required?: (members: number) => number;
}

/** Longer than a slow disk's fsync; shorter than what a caller of the API waits for an answer. */
const DEADLINE_MS = 1_500;

export class Replicas {
  readonly self: NodeName;
  readonly #options: ReplicasOptions;
  readonly #client: PeerClient;
  readonly #handlers: ScheduleHandlers;
  readonly required: (members: number) => number;

  constructor(self: NodeName, options: ReplicasOptions, handlers: ScheduleHandlers) {
    this.self = self;
    this.required = options.required ?? majorityOf;
    this.#options = options;
    this.#client = new PeerClient(options.call);
    this.#handlers = handlers;
  }

  members(): readonly NodeName[] {
    return [...new Set([this.self, ...this.#options.voters().map(({ name }) => name)])];
  }

  entry(member: NodeName): string {
    return this.#options.entry?.(member) ?? "";
  }

  /** What the word of a member is worth, by its answer. */
  witness(member: NodeName, { blank, caughtUp }: Pick<ReplyOf<"note">, "blank" | "caughtUp">): Witness {
    return { blank, returned: !blank && caughtUp !== this.entry(member) };
  }

  async ask<Route extends ScheduleRoute>(
    node: NodeName,
    route: Route,
    request: RequestOf<Route>,
    signal?: AbortSignal,
  ): Promise<PeerAnswer<ReplyOf<Route>>> {
    if (node === this.self) return this.#askHere(route, request);
    return this.askOther(node, route, request, signal && { signal });
  }

  async askOther<Route extends PeerRoute>(
    node: NodeName,
    route: Route,
    request: RequestOf<Route>,
    options: Partial<CallOptions> = {},
  ): Promise<PeerAnswer<ReplyOf<Route>>> {
    const to = this.#options.voters().find(({ name }) => name === node);
    if (!to) return { got: "refused", reason: `${node} is not a member` };
    return this.#client.ask(to, route, request, { deadlineMs: DEADLINE_MS, ...options });
  }

  majority<Value>(
    what: string,
    ask: (node: NodeName) => Promise<PeerAnswer<Value>>,
    enough?: MajorityOptions<Value>["enough"],
  ): Promise<ReadonlyMap<NodeName, Value>> {
    const { required } = this;
    return askMajority({ what, members: this.members(), required, ask, ...(enough && { enough }) });
  }

  async #askHere<Route extends ScheduleRoute>(
    route: Route,
    request: RequestOf<Route>,
  ): Promise<PeerAnswer<ReplyOf<Route>>> {
    const { self } = this;
    const handler: (request: RequestOf<Route>, from: string) => unknown = this.#handlers[route];
    try {
      return { got: "answer", value: (await handler(request, self)) as ReplyOf<Route>, node: null };
    } catch (error) {
      const reason = `${self}: ${reasonOf(error)}`;
      return { got: hasCode(error, "STALE_EPOCH") ? "stale" : "unknown", reason };
    }
  }
}
