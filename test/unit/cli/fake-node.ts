/** A node made of canned answers, which remembers what it was asked. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: IncomingMessage["headers"];
  readonly body: unknown;
}

export interface Answer {
  readonly status?: number;
  readonly body: unknown;
}

type Handler = (asked: Asked, response: ServerResponse) => Answer | Promise<Answer> | "handled";

export interface FakeNode extends AsyncDisposable {
  readonly url: string;
  readonly asked: Asked[];
  /** By `METHOD /path`; anything else is answered 404. */
  readonly routes: Map<string, Handler>;
}

export async function fakeNode(routes: Readonly<Record<string, unknown>> = {}): Promise<FakeNode> {
  const asked: Asked[] = [];
  const handlers = new Map<string, Handler>(
    Object.entries(routes).map(([route, answer]) => [
      route,
      typeof answer === "function" ? (answer as Handler) : () => ({ body: answer }),
    ]),
  );
  const server = createServer((request, response) => void serve(request, response));
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url!, "http://x");
    const text = (await request.toArray()).join("");
    const seen: Asked = {
      method: request.method!,
      path: decodeURIComponent(url.pathname),
      query: Object.fromEntries(url.searchParams),
      headers: request.headers,
      body: text === "" ? undefined : JSON.parse(text),
    };
    asked.push(seen);
    const handler = handlers.get(`${seen.method} ${seen.path}`);
    const answer = handler
      ? await handler(seen, response)
      : { status: 404, body: { error: "NOT_FOUND", message: `there is no ${seen.path}` } };
    if (answer === "handled") return;
    response.writeHead(answer.status ?? 200, { "content-type": "application/json" });
    response.end(JSON.stringify(answer.body));
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    routes: handlers,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Writes server-sent events and, unless told to break off, ends the stream. */
export function sendEvents(
  response: ServerResponse,
  events: readonly { event: string; id?: string; data: unknown }[],
  breakOff = false,
): "handled" {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const { event, id, data } of events) {
    response.write(`event: ${event}\n${id ? `id: ${id}\n` : ""}data: ${JSON.stringify(data)}\n\n`);
  }
  // Broken off only once what was written has left, or the reader would see nothing of it.
  if (breakOff) response.write("", () => response.socket?.destroySoon());
  else response.end();
  return "handled";
}

export const JOB_ID = "node-1-0199c3a1-0000-7000-8000-000000000001";
export const OTHER_ID = "node-1-0199c3a1-0000-7000-8000-000000000002";

export function jobBody(overrides: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    job_id: JOB_ID,
    task: "hello",
    queue: "default",
    status: "completed",
    priority: 0,
    progress: null,
    progress_message: null,
    attempts: 1,
    failures: 0,
    interruptions: 0,
    crashes: 0,
    max_attempts: 3,
    timeout_ms: 3_600_000,
    idempotency_key: null,
    schedule: null,
    cancel_requested: false,
    created_at: "2026-01-01T00:00:00.000Z",
    updated_at: "2026-01-01T00:00:00.000Z",
    run_at: "2026-01-01T00:00:00.000Z",
    started_at: "2026-01-01T00:00:01.000Z",
    finished_at: "2026-01-01T00:00:02.000Z",
    owner: "node-1",
    worker: "node-1/1",
    job_epoch: 1,
    owner_epoch: 1,
    leader_epoch: 1,
    error: null,
    killed: [],
    payload: { name: "world" },
    waiting_for: null,
    ...overrides,
  };
}

export function scheduleBody(overrides: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    name: "nightly",
    task: "hello",
    payload: null,
    cron: "0 3 * * *",
    every_ms: null,
    in_words: "at 03:00 every day, Europe/Berlin",
    zone: "Europe/Berlin",
    queue: "default",
    priority: 0,
    max_attempts: 3,
    timeout_ms: null,
    missed: "run_once",
    missed_max: 10,
    overlap: "allow",
    paused: false,
    created_at: "2026-01-01T00:00:00.000Z",
    updated_at: "2026-01-01T00:00:00.000Z",
    next_at: "2026-01-02T02:00:00.000Z",
    last_fired_at: null,
    last_job_id: null,
    leader_epoch: 1,
    ...overrides,
  };
}

export function nodeBody(over: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    name: "node-1",
    status: "active",
    last_seen: "2026-01-01T00:59:58.000Z",
    alive: true,
    incarnation: "i",
    url: "http://10.0.0.1:8420",
    hostname: "h",
    address: "10.0.0.1",
    http_port: 8420,
    roles: ["gateway", "worker"],
    capabilities: [],
    version: "0.1.0",
    started_at: "2026-01-01T00:00:00.000Z",
    load: { jobs: 3, connections: 1, cpu: 0.256, memory: 0.5, loop_lag_ms: 1.4 },
    reach: [],
    ...over,
  };
}

export function clusterBody(over: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    name: "baton",
    total_nodes: 2,
    active_nodes: 1,
    draining_nodes: 0,
    dead_nodes: 1,
    joining_nodes: 0,
    scheduler_leader: "node-1",
    minimum_nodes: 1,
    formed: true,
    notes: [],
    ...over,
  };
}
