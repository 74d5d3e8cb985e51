/**
 * Serves requests of other nodes that the transport has authenticated, under the same rules as callers over HTTP. Paths
 * under `/peer/` are not operations: the handler that is mounted there answers them.
 */

import FindMyWay from "find-my-way";
import { requirePermission } from "../core/access/permissions.ts";
import { BatonError } from "../core/errors.ts";
import type { ServerEvent } from "../platform/feed.ts";
import { traceFields } from "../core/trace.ts";
import type { Platform } from "../platform/platform.ts";
import { traceIn } from "../transport/hop-headers.ts";
import type { PeerHandler, PeerReply, ReceivedRequest } from "../transport/transport.ts";
import { EVENT_HEADERS, eventBytes } from "./schema/event-bytes.ts";
import type { OperationExecutor, OperationInput } from "./execute.ts";
import { readJson } from "./schema/json-body.ts";
import { prepared } from "./schema/operation-schema.ts";
import type { EventReply, Operation } from "./operation.ts";
import { problemOf } from "./problem.ts";
import { OPERATIONS } from "./operation-table.ts";

interface PeerRequestHandlerOptions {
  readonly executor: OperationExecutor;
  /** By the path under which they answer: `/peer/election`. The longest that fits is taken. */
  readonly mounts?: Readonly<Record<string, PeerHandler>>;
}

const JSON_TYPE = "application/json; charset=utf-8";
/** As long as a header may be; an id that is too long is refused as an id. */
const PARAM_LENGTH_MAX = 16_384;

export type PeerRequestHandler = ReturnType<typeof peerRequestHandler>;

export function peerRequestHandler(
  { clock, log }: Pick<Platform, "clock" | "log">,
  { executor, mounts = {} }: PeerRequestHandlerOptions,
) {
  const idPrefix = executor.services.identity.incarnation.slice(0, 8);
  const byLength = Object.entries(mounts).sort(([a], [b]) => b.length - a.length);
  const operations = FindMyWay({ maxParamLength: PARAM_LENGTH_MAX, onBadUrl: () => {} });
  for (const operation of OPERATIONS)
    operations.on(operation.method, routerPath(operation.path), () => {}, operation);
  const streams = new Set<AbortController>();
  let unnamed = 0;

  function mounted(request: ReceivedRequest): Promise<PeerReply> {
    const [path] = request.path.split("?", 1) as [string];
    const found = byLength.find(
      ([mount]) => path === mount || (path.startsWith(mount) && path[mount.length] === "/"),
    );
    if (!found) throw new BatonError("NOT_FOUND", `there is nothing for nodes at ${path.slice(0, 200)}`);
    return found[1](request);
  }

  function find({ method, path }: ReceivedRequest) {
    const found = operations.find(method, path);
    const plain = path.split("?", 1)[0]!.slice(0, 200);
    if (!found) throw new BatonError("NOT_FOUND", `there is nothing at ${method} ${plain}`);
    const operation = found.store as Operation | null;
    if (operation)
      return { operation, params: found.params, query: found.searchParams as Record<string, unknown> };
    throw new BatonError("BAD_REQUEST", "the path is not a valid URL; percent-encode special characters");
  }

  async function execute(request: ReceivedRequest): Promise<PeerReply> {
    const { from, method, headers } = request;
    const { operation, params, query } = find(request);
    const inbound = executor.inboundFrom(from, query, headers);
    // The node that forwarded it has checked this too, by its own table.
    requirePermission(inbound.principal, operation.permission);
    const id = idOf(request);
    const input: OperationInput = {
      params,
      query,
      body: readJson(request.body),
      headers,
      inbound,
      principal: inbound.principal,
      request: { id, method, url: request.path, bodyText: request.body },
    };
    prepared(operation).validate(input);
    const answer = await executor.execute(operation, input);
    if ("events" in answer) {
      const stream = streamOf(answer.events, request.signal);
      return { status: 200, headers: headersOf(id, EVENT_HEADERS), stream };
    }
    const { status, ...rest } = answer;
    return { ...rest, status, headers: headersOf(id, answer.headers) };
  }

  function streamOf(events: EventReply["events"], reader: AbortSignal | undefined) {
    const stop = new AbortController();
    const leave = (): void => stop.abort();
    async function* counted(signal: AbortSignal): AsyncGenerator<ServerEvent> {
      if (reader?.aborted) leave();
      reader?.addEventListener("abort", leave, { once: true });
      streams.add(stop);
      try {
        yield* events(signal);
      } finally {
        streams.delete(stop);
        reader?.removeEventListener("abort", leave);
      }
    }
    return eventBytes(counted, clock, stop);
  }

  function headersOf(id: string, headers: Readonly<Record<string, string>>): Record<string, string> {
    return { "x-request-id": id, ...executor.nodeHeaders(), ...headers };
  }

  function idOf({ headers }: ReceivedRequest): string {
    return headers["x-request-id"] ?? `${idPrefix}-p${(++unnamed).toString(36)}`;
  }

  function failed(error: unknown, request: ReceivedRequest): PeerReply {
    const reqId = idOf(request);
    const problem = problemOf(error, reqId);
    if (problem.fault) {
      const { method, path, from } = request;
      const trace = traceFields(traceIn(request.headers));
      log.error({ error, reqId, method, path, from, ...trace }, "a request of a node failed");
    }
    const headers = headersOf(reqId, { "content-type": JSON_TYPE });
    if (problem.retryAfter) headers["retry-after"] = "1";
    return { status: problem.status, headers, body: JSON.stringify(problem.body) };
  }

  const handle: PeerHandler = async (request) => {
    try {
      return await (request.path.startsWith("/peer/") ? mounted(request) : execute(request));
    } catch (error) {
      return failed(error, request);
    }
  };

  return {
    /** Never rejects: a node that could not carry a request out says so. */
    handle,

    get streams(): number {
      return streams.size;
    },

    endStreams(): void {
      for (const stop of streams) stop.abort();
    },
  };
}

/** `/jobs/{id}` becomes `/jobs/:id`, as find-my-way and Fastify write it. */
export function routerPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}
