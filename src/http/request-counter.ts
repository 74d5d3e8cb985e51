import type { FastifyReply, FastifyRequest } from "fastify";
import type { Operation } from "../api/operation.ts";
import type { HttpMetrics } from "../observe/metrics/http-metrics.ts";

export type RequestSink = Pick<HttpMetrics, "answered">;

/** For what no route is for: whatever callers make up must not become a label. */
const UNKNOWN_ROUTE = "other";

/** How long a stream lasted, or a call that waits for something to happen, says nothing of how fast anything is. */
export function countRequests(sink: RequestSink, operations: readonly Operation[]) {
  const untimed = new Set(
    operations.filter(({ streams, waits }) => streams || waits).map(({ path }) => path),
  );
  const routes = new Map<string, string>();
  const named = (url: string): string => {
    let route = routes.get(url);
    if (route === undefined) routes.set(url, (route = url.replaceAll(/:(\w+)/g, "{$1}")));
    return route;
  };
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const { url } = request.routeOptions;
    const route = url === undefined ? UNKNOWN_ROUTE : named(url);
    const took = untimed.has(route) ? null : reply.elapsedTime;
    sink.answered(request.method, route, reply.raw.statusCode, took);
    done();
  };
}
