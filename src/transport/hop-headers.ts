/**
 * The data that a request carries from the node that received it (the ingress) to the node that answers.
 *
 * The query contains `internal=1`, the time of sending, and the ids of new jobs. It counts only in a request that came
 * over the transport between nodes, which proves its sender; in a request over HTTP it is dropped.
 */

import { readPrincipal, writePrincipal, type Principal } from "../core/access/permissions.ts";
import { BatonError } from "../core/errors.ts";
import { isUuid } from "../core/ids.ts";
import { traceOf } from "../core/trace.ts";
import type { Clock } from "../platform/clock.ts";
import { DEADLINE_HEADER } from "./call-outcome.ts";
import type { Transport } from "./transport.ts";

export interface Inbound {
  /** The node that forwarded it; null for a caller from outside. */
  readonly from: string | null;
  /** The first uuid for the jobs that it makes; null leaves them to us. */
  readonly firstUuid: string | null;
  /** What the sender thinks of the cluster (see Peers.configHash). */
  readonly configHash: string | null;
  /** By our monotonic clock: from then on no caller waits for the answer. Null where that is not known. */
  readonly deadlineAt: number | null;
  /** False when the caller wants an answer of this very node. */
  readonly mayForward: boolean;
  /** The caller, as the node that forwarded the request has authenticated it; null for a public request. */
  readonly principal: Principal | null;
}

/** Addresses come from the view of the cluster alone, never from a request. */
export interface Peers extends Pick<Transport, "call" | "stream"> {
  /** For a request that is passed on, unless its caller waits less. */
  readonly requestTimeoutMs: number;
  /** Stands for this node's idea of who is in the cluster: nodes of differing ideas could send a request in circles. */
  configHash(): string;
  /** False while nodes that live have another idea of it than this one. */
  agreed(): boolean;
}

export const OUTSIDE: Inbound = {
  from: null,
  firstUuid: null,
  configHash: null,
  deadlineAt: null,
  mayForward: true,
  principal: null,
};

export const NO_FORWARD_HEADER = "x-baton-no-forward";
const CONFIG_HEADER = "x-baton-config";
export const VIA_HEADER = "x-baton-via";
/** Only a request of a node may carry it. */
const PRINCIPAL_HEADER = "x-baton-principal";

/** Of a caller from outside. All other headers stay at the node that received them, above all tokens and cookies. */
const PASSED_ON = [
  "accept",
  "content-type",
  "idempotency-key",
  "last-event-id",
  "traceparent",
  "tracestate",
] as const;

const PASSED_BACK = [
  "allow",
  "cache-control",
  "content-type",
  "etag",
  "location",
  "retry-after",
  "x-baton-epoch",
  "x-baton-node",
  "x-baton-role",
] as const;

type Headers = Readonly<Record<string, string | string[] | undefined>>;

export function headersOn(
  headers: Headers,
  requestId: string,
  principal: Principal | null,
): Record<string, string> {
  return { "x-request-id": requestId, ...principalHeader(principal), ...picked(headers, PASSED_ON) };
}

/** For every call to another node on behalf of a caller; without it a node calls for itself, with the permission admin. */
export function principalHeader(principal: Principal | null): Record<string, string> {
  return principal === null ? {} : { [PRINCIPAL_HEADER]: writePrincipal(principal) };
}

export function headersBack(headers: Headers): Record<string, string> {
  return picked(headers, PASSED_BACK);
}

function picked(headers: Headers, names: readonly string[]): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const name of names) {
    const value = headers[name];
    if (typeof value === "string") passed[name] = value;
  }
  return passed;
}

/** Whoever comes through a proxy is not on this machine, also where the proxy is. */
export function isPassedOn(headers: Headers): boolean {
  return (
    headers["x-forwarded-for"] !== undefined ||
    headers["forwarded"] !== undefined ||
    headers["x-real-ip"] !== undefined ||
    headers["via"] !== undefined
  );
}

/** The trace that a request came in; null for most. */
export function traceIn(headers: Headers): string | null {
  const parent = headers["traceparent"];
  return parent === undefined ? null : traceOf(parent, headers["tracestate"]);
}

/** The path as the next node gets it. */
export function hopPath(
  path: string,
  { sentAt, firstUuid }: { readonly sentAt: number; readonly firstUuid?: string },
): string {
  const plain = withoutInternal(path);
  const ids = firstUuid === undefined ? "" : `&internal_first=${firstUuid}`;
  return `${plain}${plain.includes("?") ? "&" : "?"}internal=1&internal_sent=${sentAt}${ids}`;
}

/** Drops what callers wrote as if they were one of us, in whatever spelling a query allows. */
function withoutInternal(path: string): string {
  // A request line may name a whole URL; only its path is ever used.
  const local = path.startsWith("/") ? path : path.replace(/^\w+:\/\/[^/]*/, "");
  const cut = local.indexOf("?");
  if (cut < 0) return local;
  const query = new URLSearchParams(local.slice(cut + 1));
  const spoofed = [...query.keys()].filter(isInternal);
  if (spoofed.length === 0) return local;
  for (const name of spoofed) query.delete(name);
  return query.size === 0 ? local.slice(0, cut) : `${local.slice(0, cut)}?${query.toString()}`;
}

function isInternal(name: string): boolean {
  return name.startsWith("internal");
}

export function hopHeaders(
  headers: Readonly<Record<string, string>>,
  deadlineMs: number,
  peers: Pick<Peers, "configHash">,
): Record<string, string> {
  return {
    ...headers,
    [DEADLINE_HEADER]: String(Math.max(1, Math.floor(deadlineMs))),
    [CONFIG_HEADER]: peers.configHash(),
  };
}

/** How long the caller waits: as it says, and never longer than we allow. */
export function patienceMs(headers: Headers, maxMs: number): number {
  const header = headers[DEADLINE_HEADER];
  if (typeof header !== "string" || !/^\d{1,9}$/.test(header)) return maxMs;
  return Math.min(Math.max(Number(header), 1), maxMs);
}

/**
 * Reads, and removes from the query, the data that a request of a node carries. `lateBy`: how much longer than usual a
 * request of this sender was on its way, by when it says that it was sent.
 */
export function arrival(
  from: string,
  query: Record<string, unknown>,
  headers: Headers,
  { clock, lateBy }: { clock: Clock; lateBy: (from: string, sentAt: number) => number },
): Inbound {
  const first = query["internal_first"];
  const sent = query["internal_sent"];
  const config = headers[CONFIG_HEADER];
  dropInternal(query);
  const patience = patienceMs(headers, Number.MAX_SAFE_INTEGER);
  const late = typeof sent === "string" && /^\d{1,15}$/.test(sent) ? lateBy(from, Number(sent)) : 0;
  return {
    from,
    firstUuid: typeof first === "string" && isUuid(first) ? first : null,
    configHash: typeof config === "string" ? config.slice(0, 64) : null,
    deadlineAt: patience === Number.MAX_SAFE_INTEGER ? null : clock.monotonic() + patience - late,
    mayForward: false,
    principal: principalIn(from, headers[PRINCIPAL_HEADER]),
  };
}

function principalIn(from: string, header: string | string[] | undefined): Principal {
  if (header === undefined) return { kind: "node", name: from, permission: "admin", id: null };
  const principal = typeof header === "string" ? readPrincipal(header) : null;
  if (principal) return principal;
  throw new BatonError(
    "FORBIDDEN",
    `${from} calls on behalf of a principal that this node cannot read; upgrade the older node`,
  );
}

export function dropInternal(query: Record<string, unknown>): void {
  for (const name of Object.keys(query)) if (isInternal(name)) delete query[name];
}
