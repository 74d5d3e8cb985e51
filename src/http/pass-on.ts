/** Requests that belong to another node: they are passed on, and what comes back is passed back. */

import type { FastifyReply, FastifyRequest } from "fastify";
import type { Admission } from "../api/admission.ts";
import { Forwarder } from "../api/forward.ts";
import type { PassedBack, Passing } from "../api/forward.ts";
import { headersBack, patienceMs, VIA_HEADER } from "../transport/hop.ts";
import type { Input, Operation } from "../api/operation.ts";
import type { NodeServices } from "../api/node-services.ts";
import type { Peers } from "../transport/hop.ts";
import type { NodeInfo } from "../core/node.ts";
import type { Target } from "../core/route.ts";
import type { Tracing } from "../platform/tracing.ts";
import type { Entrance } from "./entrance.ts";
import type { EventStreams } from "./event-streams.ts";
import { ProxyHop } from "./proxy-hop.ts";

export interface PassOnOptions {
  readonly services: NodeServices;
  readonly peers: Peers;
  readonly admission: Admission;
  readonly streams: EventStreams;
  readonly entrance: Pick<Entrance, "stays">;
  readonly tracing: Tracing;
}

export class PassOn {
  readonly #o: PassOnOptions;
  readonly #forwarder: Forwarder;

  constructor(options: PassOnOptions) {
    this.#o = options;
    this.#forwarder = new Forwarder(options.peers, options.services.clock);
  }

  /** To the one node that it belongs to. */
  async forward(
    operation: Operation,
    to: NodeInfo,
    target: Target,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<unknown> {
    const leave = this.#o.admission.pass(operation);
    const hop = this.#hop(operation, request);
    try {
      const passing: Passing = {
        to,
        target,
        mutates: operation.mutates,
        method: request.method,
        path: request.url,
        headers: hop.headers,
        body: request.bodyText,
        deadlineMs: patienceMs(request.headers, this.#o.peers.requestTimeoutMs),
      };
      const asItComes = operation.streams === true || operation.large === true;
      if (asItComes && request.method !== "HEAD")
        return await hop.to(to, this.#stream(passing, request, reply));
      return this.#back(reply, await hop.to(to, this.#forwarder.pass(passing)));
    } finally {
      leave();
    }
  }

  /** New work, to whoever takes it; undefined when it stays here. */
  async place(
    operation: Operation,
    input: Input<unknown, unknown, unknown>,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<string | undefined> {
    const { services, peers, admission } = this.#o;
    const { placement } = services;
    if (!placement || !operation.places) return undefined;
    const { waitsMs = 0, ...wish } = operation.places(services, input);
    const leave = admission.pass(operation);
    const hop = this.#hop(operation, request);
    try {
      const placing = placement.place({
        ...wish,
        path: request.url,
        body: request.bodyText,
        headers: hop.headers,
        deadlineMs: waitsMs + patienceMs(request.headers, peers.requestTimeoutMs),
      });
      const placed = await hop.placed(placing);
      return placed.at === "here" ? undefined : this.#back(reply, placed.reply);
    } finally {
      leave();
    }
  }

  #hop(operation: Operation, request: FastifyRequest): ProxyHop {
    return new ProxyHop(this.#o.tracing, operation, request);
  }

  async #stream(passing: Passing, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const stop = new AbortController();
    const left = (): void => stop.abort();
    reply.raw.once("close", left);
    try {
      const { status, headers, body } = await this.#forwarder.stream(passing, stop.signal);
      const passed = { ...headersBack(headers), [VIA_HEADER]: this.#o.services.identity.name };
      const length = headers["content-length"];
      const head = {
        status,
        headers: length === undefined ? passed : { ...passed, "content-length": length },
        idleMs: passing.deadlineMs,
      };
      const stays = this.#o.entrance.stays(request);
      this.#o.streams.relay(reply, head, body as AsyncIterable<Buffer>, stop, stays);
    } catch (error) {
      // Also when the reply was none of ours: what is left of it is not waited for.
      stop.abort();
      throw error;
    } finally {
      reply.raw.off("close", left);
    }
  }

  #back(reply: FastifyReply, { status, headers, body }: PassedBack): string {
    reply.code(status).headers(headersBack(headers)).header(VIA_HEADER, this.#o.services.identity.name);
    return body as string;
  }
}
