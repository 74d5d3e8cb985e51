/**
 * A node's dashboard and API in a server of the program around it: who the caller is, in which permission, and where the
 * mount begins. What differs between servers is in express.ts and fastify.ts.
 *
 *   `authenticate` given  --> its answer counts, and nothing else
 *   none                  --> refused, but for callers on this machine of a server that listens to it alone (loopback)
 */

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { problemOf } from "../../api/problem.ts";
import {
  isLoopback,
  isPermission,
  LOOPBACK,
  PERMISSIONS,
  plainName,
  type Permission,
  type Principal,
} from "../../core/access/permissions.ts";
import { BatonError, nearest } from "../../core/errors.ts";
import { isPassedOn } from "../../transport/hop-headers.ts";
import type { Mounted, OuterCaller } from "../../http/outer-callers.ts";

/** A node, as `createNode` gives it. */
export interface MountableNode {
  /** Throws before the node has been started. */
  readonly mounted: Mounted;
}

/** What a caller may do here, with a name for the audit if there is one; anything else without a permission is refused. */
export type Admission =
  | Permission
  | { readonly name: string; readonly permission: Permission }
  | null
  | undefined
  | false;

export interface MountOptions<Request> {
  /** Who calls. Called for every request, before anything is answered. */
  readonly authenticate?: (request: Request) => Admission | Promise<Admission>;
}

/** One request, as the server around the node has it. */
export interface Visit<Request> {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** What the program's own function gets. */
  readonly theirs: Request;
  readonly address: string;
  readonly host: string | undefined;
  /** False when answers that go on for long have to end. */
  readonly stays: () => boolean;
}

export interface Mount<Request> {
  /** Rejects with what `authenticate` throws, for the error handling of that server. */
  readonly admit: (visit: Visit<Request>) => Promise<OuterCaller>;
  readonly serve: (visit: Visit<Request>, caller: OuterCaller) => Promise<void>;
}

export function mount<Request>(baton: MountableNode, options: MountOptions<Request>): Mount<Request> {
  const { authenticate } = options;
  if (typeof baton !== "object" || baton === null || !("mounted" in baton))
    throw bad("baton", "must be a node, as createNode gives it");
  if (authenticate !== undefined && typeof authenticate !== "function")
    throw bad("authenticate", "must be a function from a request to a permission");

  return {
    async admit({ request, theirs, address, host, stays }) {
      const principal = authenticate
        ? principalOf(await authenticate(theirs))
        : isOnThisMachine(request)
          ? LOOPBACK
          : null;
      return {
        principal,
        ...(!authenticate && { refusal: NOBODY_ASKS }),
        address,
        ...(host !== undefined && { host }),
        body: bodyReadBefore(request),
        stays,
      };
    },

    async serve({ request, response }, caller) {
      try {
        const { mounted } = baton;
        const isRefused = !authenticate && mounted.required === "always";
        await mounted.handle(request, response, isRefused ? { ...caller, principal: null } : caller);
      } catch (error) {
        refuse(response, error);
      }
    },
  };
}

/** A misspelt `authenticate` would leave the dashboard closed, and the reason would be hard to find. */
export function checkNames(options: object, known: readonly string[]): void {
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    const near = nearest(name, known);
    throw bad(name, `is not an option of the dashboard${near ? `; did you mean ${near}?` : ""}`);
  }
}

function bad(field: string, message: string): BatonError {
  return new BatonError("BAD_CONFIG", `"${field}" ${message}`, { field });
}

const NOBODY_ASKS = new BatonError(
  "UNAUTHENTICATED",
  "the application has not said who may come in here: give the dashboard a function `authenticate`; without one it answers only on the machine of a server that listens on 127.0.0.1",
);

function principalOf(admission: Admission): Principal | null {
  if (admission === null || admission === undefined || admission === false) return null;
  const { permission, name } =
    typeof admission === "object" ? admission : { permission: admission, name: undefined };
  if (!isPermission(permission)) {
    const near = typeof permission === "string" ? nearest(permission, PERMISSIONS) : null;
    const advice = near ? `; did you mean ${near}?` : "";
    throw bad("authenticate", `must answer with one of ${PERMISSIONS.join(", ")}, or with null${advice}`);
  }
  const isNamed = typeof name === "string" && name !== "";
  return { kind: "application", name: isNamed ? plainName(name) : "caller", permission, id: null };
}

/**
 * By the rule for a node's own listener: it must be on loopback, so that only this machine reaches it, and nobody may
 * have passed the request on. The Host is compared because a web page may have a name that points here (DNS rebinding).
 */
function isOnThisMachine({ socket, headers }: IncomingMessage): boolean {
  const { server } = socket as { readonly server?: Partial<Pick<Server, "address">> };
  const listens = server?.address?.() ?? null;
  if (listens === null || typeof listens === "string" || !isLoopback(listens.address)) return false;
  const host = (headers.host ?? "").replace(/:\d{1,5}$/, "");
  return isLoopback(socket.remoteAddress ?? "") && isLoopback(host) && !isPassedOn(headers);
}

/** As `express.json()` leaves it. */
function bodyReadBefore(request: IncomingMessage & { readonly body?: unknown }): string | null {
  if (!request.readableDidRead) return null;
  const { body } = request;
  if (typeof body === "string") return body;
  if (body instanceof Uint8Array) return Buffer.from(body).toString("utf8");
  if (body !== undefined) return JSON.stringify(body);
  const remedy = "mount the dashboard before what reads bodies";
  throw new BatonError("BAD_CONFIG", `the body of this request was read before it came to Baton; ${remedy}`);
}

/** For what our app has not answered, because there is none. */
function refuse(response: ServerResponse, error: unknown): void {
  if (response.headersSent) return void response.destroy();
  const { status, body } = problemOf(error, "unknown");
  response.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "cache-control": "no-store",
  });
  response.end(JSON.stringify(body));
}

/**
 * The addresses in the pages are relative: without the slash behind the mount they would lead past it. Relative itself,
 * because a proxy may have taken a prefix away.
 */
export function redirectToSlash(response: ServerResponse, url: string): void {
  const [path, query] = url.split("?", 2) as [string, string?];
  const last = path.slice(path.lastIndexOf("/") + 1);
  response.writeHead(308, { location: `./${last}/${query === undefined ? "" : `?${query}`}` });
  response.end();
}
