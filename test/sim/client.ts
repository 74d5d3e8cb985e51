/**
 * A caller outside of the cluster: it executes operations of the API at any node, waits for a limited time, and never
 * learns whether a request without an answer was carried out.
 */

import type { OperationExecutor, OperationInput } from "../../src/api/execute.ts";
import { OPERATIONS } from "../../src/api/operation-table.ts";
import { prepared } from "../../src/api/schema/operation-schema.ts";
import { LOOPBACK } from "../../src/core/access/permissions.ts";
import { problemOf } from "../../src/api/problem.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { OUTSIDE } from "../../src/transport/hop-headers.ts";

export interface ClientRequest {
  readonly params?: Record<string, string>;
  readonly query?: Record<string, unknown>;
  readonly body?: unknown;
}

export interface ClientReply {
  readonly status: number;
  readonly body: any;
}

export interface Served {
  readonly clock: Clock;
  readonly executor: OperationExecutor;
}

const PATIENCE_MS = 5_000;

export async function callNode(
  { clock: node, executor }: Served,
  name: string,
  request: ClientRequest,
  clock: Clock,
  id: string,
): Promise<ClientReply | null> {
  const { promise, resolve } = Promise.withResolvers<ClientReply | null>();
  const callOff = clock.after(PATIENCE_MS, () => resolve(null));
  // Both ways through the node's own turns: a paused node neither takes a request nor answers one.
  node.after(1, () => {
    void execute(executor, name, request, id).then(async (reply) => {
      await node.turn();
      resolve(reply);
    });
  });
  const reply = await promise;
  callOff();
  return reply;
}

async function execute(
  executor: OperationExecutor,
  name: string,
  { params = {}, query = {}, body }: ClientRequest,
  id: string,
): Promise<ClientReply> {
  const operation = OPERATIONS.find((each) => each.name === name)!;
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, key: string) => encodeURIComponent(params[key]!));
  const search = new URLSearchParams(query as Record<string, string>).toString();
  const bodyText = body === undefined ? "" : JSON.stringify(body);
  const input: OperationInput = {
    params: { ...params },
    query: { ...query },
    body: bodyText === "" ? null : JSON.parse(bodyText),
    headers: {},
    inbound: OUTSIDE,
    principal: LOOPBACK,
    request: { id, method: operation.method, url: search ? `${path}?${search}` : path, bodyText },
  };
  try {
    prepared(operation).validate(input);
    const answer = await executor.execute(operation, input);
    if ("events" in answer) throw new Error(`${name} answers with events`);
    const parts: Buffer[] = [];
    if ("stream" in answer) for await (const part of answer.stream) parts.push(part);
    const text = "stream" in answer ? Buffer.concat(parts).toString("utf8") : answer.body;
    return { status: answer.status, body: text === "" ? null : JSON.parse(text) };
  } catch (error) {
    const problem = problemOf(error, id);
    return { status: problem.status, body: problem.body };
  }
}
