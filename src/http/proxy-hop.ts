import type { FastifyRequest } from "fastify";
import { headersOn, traceIn } from "../transport/hop.ts";
import type { Operation } from "../api/operation.ts";
import type { Placed } from "../cluster/placement.ts";
import type { NodeInfo } from "../core/node.ts";
import { traceHeaders } from "../core/trace.ts";
import { ACTIVE, failureOf, type Span, type Tracing } from "../platform/tracing.ts";

/** A request on its way to another node: the headers that it takes along, and the span of the way where somebody records. */
export class ProxyHop {
  readonly headers: Record<string, string>;
  readonly #span: Span | null;

  constructor(tracing: Tracing, operation: Operation, request: FastifyRequest) {
    this.headers = headersOn(request.headers, request.id, request.principal);
    this.#span = tracing.on ? start(tracing, operation, request) : null;
    if (this.#span) Object.assign(this.headers, traceHeaders(this.#span.trace));
  }

  async to<T>(node: NodeInfo, answer: Promise<T>): Promise<T> {
    this.#span?.set({ "baton.target": node.name });
    return this.#until(answer, (given) => {
      const { status } = (given ?? {}) as { readonly status?: number };
      if (status !== undefined) this.#span?.set({ "http.response.status_code": status });
    });
  }

  /** What stays here was on no way: its span is let go. */
  async placed(placing: Promise<Placed>): Promise<Placed> {
    if (!this.#span) return placing;
    const placed = await placing.catch((error: unknown) => {
      this.#span!.end(failureOf(error));
      throw error;
    });
    if (placed.at === "here") return placed;
    this.#span.set({
      "baton.target": placed.node.name,
      "http.response.status_code": placed.reply.status,
    });
    this.#span.end();
    return placed;
  }

  async #until<T>(answer: Promise<T>, tell: (given: T) => void): Promise<T> {
    if (!this.#span) return answer;
    try {
      const given = await answer;
      tell(given);
      this.#span.end();
      return given;
    } catch (error) {
      this.#span.end(failureOf(error));
      throw error;
    }
  }
}

function start(tracing: Tracing, operation: Operation, request: FastifyRequest): Span {
  return tracing.start("baton.proxy", {
    kind: "client",
    parent: tracing.active() === null ? traceIn(request.headers) : ACTIVE,
    attributes: { "http.request.method": request.method, "http.route": operation.path },
  });
}
