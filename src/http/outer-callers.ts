/**
 * Callers of a server around this node, in which the API is mounted: what that server knows of a request. The request
 * itself goes to our app as Node made it; what belongs to it is looked up here.
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Principal } from "../core/access/permissions.ts";
import type { BatonError } from "../core/errors.ts";

/** What a server around a node uses of it. */
export interface Mounted {
  /** The setting `access.required`: with `auto`, callers on the machine of a server on loopback need no credentials. */
  readonly required: "auto" | "always";
  /** Answers a request whose `url` is the path below the place where this is mounted. */
  handle(request: IncomingMessage, response: ServerResponse, caller: OuterCaller): Promise<void>;
}

export interface OuterCaller {
  /** Null: they are refused, with `refusal`. */
  readonly principal: Principal | null;
  readonly refusal?: BatonError;
  readonly address: string;
  /** As the browser called it, where that server trusts a proxy in front of it. */
  readonly host?: string;
  /** The text of a body that was read before the request came here; null if it was not. */
  readonly body: string | null;
  /** False when an answer that goes on for long has to end. */
  readonly stays: () => boolean;
}

const callers = new WeakMap<IncomingMessage, OuterCaller>();

export function noteOuterCaller(request: IncomingMessage, caller: OuterCaller): void {
  callers.set(request, caller);
}

export function outerCallerOf(request: IncomingMessage): OuterCaller | undefined {
  return callers.get(request);
}
