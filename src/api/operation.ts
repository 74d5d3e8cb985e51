/**
 * A row of the operation table: one thing that a caller can do. HTTP routes, OpenAPI document, types of the client and
 * permission checks are derived from it.
 */

import type { z } from "zod";
import type { NeededPermission, Principal } from "../core/access/permissions.ts";
import type { Target } from "../core/route.ts";
import type { Caller } from "../controller/lease-waiters.ts";
import type { ServerEvent } from "../platform/feed.ts";
import type { Inbound } from "../transport/hop-headers.ts";
import type { CookieScope } from "./bodies/session-cookie.ts";
import type { NodeServices } from "./node-services.ts";
import type { PlacementRequest } from "../peers/placement/round-robin-placement.ts";

export type { Permission } from "../core/access/permissions.ts";

export type Method = "GET" | "POST" | "PUT" | "DELETE";

/** By the first step of the path; `node` for all others. */
const TAGS = {
  jobs: "jobs",
  admin: "jobs",
  functions: "functions",
  queues: "queues",
  schedules: "schedules",
  v1: "controller",
  cluster: "cluster",
  scaling: "cluster",
  session: "access",
  tokens: "access",
  users: "access",
} as const;

/** `node` and `cluster` are answered by every node; the rest is for callers, whom gateways serve. */
export type Tag = (typeof TAGS)[keyof typeof TAGS] | "node";

type Schema = z.ZodType;
type Maybe = Schema | undefined;
type OutputOf<S extends Maybe> = S extends Schema ? z.output<S> : undefined;

export interface Input<Params, Query, Body> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly inbound: Inbound;
  /** Who asks; null only where `permission` is `public`. */
  readonly principal: Principal | null;
  readonly caller?: Caller;
  /** With the tag `access` only, from a caller: how a cookie for it is to be. */
  readonly cookie?: CookieScope;
}

/** `waitsMs`: how long an answer may take by the nature of the request, beside the time for the way. */
export interface Places extends Pick<PlacementRequest, "wants" | "key" | "jobs" | "prefersHere"> {
  readonly waitsMs?: number;
}

/** Answered as `text/event-stream` until the events end or the signal fires (the reader left, or we stop). */
export interface EventReply {
  readonly events: (signal: AbortSignal) => AsyncIterable<ServerEvent>;
}

type BodyReply<Replies> = {
  [Status in keyof Replies & number]: {
    readonly status: Status;
    readonly body: Replies[Status] extends Schema ? z.input<Replies[Status]> : never;
    readonly headers?: Readonly<Record<string, string>>;
  };
}[keyof Replies & number];

export type Reply<Replies> = BodyReply<Replies> | EventReply;

interface Row<
  Params extends Maybe,
  Query extends Maybe,
  Body extends Maybe,
  Replies extends Readonly<Record<number, Schema>>,
> {
  readonly summary: string;
  /** What a caller must be allowed to do, checked before the body is read. Without it `read` for GET, else `operate`. */
  readonly permission?: NeededPermission;
  /** Which node answers: always the same kind, or depending on the input. Any node, for itself, if it is left out. */
  readonly target?: Target | ((input: Input<OutputOf<Params>, OutputOf<Query>, OutputOf<Body>>) => Target);
  /** Whether it makes a change; as for every method but GET if it is left out. */
  readonly mutates?: boolean;
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
  /** By status; refusals are problems (see problem.ts) and need no row of their own. */
  readonly replies: Replies;
  readonly streams?: boolean;
  /** True when `handler` may hold its answer back for long, and so wants to know whether somebody still waits for it. */
  readonly waits?: boolean;
  /** True when an answer may be so large that whoever passes it on should not hold it in memory. */
  readonly large?: boolean;
  /** True when it comes by the thousand: it is counted in the audit, and has no entry of its own. */
  readonly frequent?: boolean;
  /** What the audit tells of the body, which it does not tell by itself: payloads and passwords stay out of it. */
  readonly audits?: (
    input: Pick<Input<OutputOf<Params>, OutputOf<Query>, OutputOf<Body>>, "body">,
  ) => Readonly<Record<string, unknown>>;
  /** True when it takes a password: few tries are granted to an address, and to a user. */
  readonly login?: boolean;
  /** For new work, with the target `any`: what it needs of the node that gets it. */
  readonly places?: (
    services: NodeServices,
    input: Input<OutputOf<Params>, OutputOf<Query>, OutputOf<Body>>,
  ) => Places;
  handler(
    services: NodeServices,
    input: Input<OutputOf<Params>, OutputOf<Query>, OutputOf<Body>>,
  ): Promise<Reply<Replies>> | Reply<Replies>;
}

export interface DeclaredOperation<
  Route extends string = string,
  Params extends Maybe = any,
  Query extends Maybe = any,
  Body extends Maybe = any,
  Replies extends Readonly<Record<number, Schema>> = any,
> extends Row<Params, Query, Body, Replies> {
  /** As `GET /jobs/{id}`: the method and the path. */
  readonly route: Route;
  readonly method: Method;
  readonly path: string;
  readonly tag: Tag;
  readonly permission: NeededPermission;
  readonly target: NonNullable<Row<Params, Query, Body, Replies>["target"]>;
  readonly mutates: boolean;
}

export interface Operation extends DeclaredOperation {
  readonly name: string;
}

/** A row of the table. Keeps the literal types, so that the client can be checked against the table. */
export function operation<
  const Route extends `${Method} /${string}`,
  const Replies extends Readonly<Record<number, Schema>>,
  Params extends Maybe = undefined,
  Query extends Maybe = undefined,
  Body extends Maybe = undefined,
>(
  route: Route,
  row: Row<Params, Query, Body, Replies>,
): DeclaredOperation<Route, Params, Query, Body, Replies> {
  const [method, path] = route.split(" ") as [Method, string];
  const isGet = method === "GET";
  return {
    target: { at: "here" },
    mutates: !isGet,
    permission: isGet ? "read" : "operate",
    ...row,
    tag: TAGS[path.split("/")[1] as keyof typeof TAGS] ?? "node",
    route,
    method,
    path,
  };
}

/** One object for all: the serving side can tell by it that there is nothing to do. */
export const NO_HEADERS: Readonly<Record<string, string>> = {};

export function answer<const Status extends number, const Body>(
  status: Status,
  body: Body,
  headers: Readonly<Record<string, string>> = NO_HEADERS,
): { readonly status: Status; readonly body: Body; readonly headers: Readonly<Record<string, string>> } {
  return { status, body, headers };
}
