/**
 * Signs calls between nodes, and detects calls that were altered or signed with another secret. Permissions, the age of
 * a call and replays are checked by the `Authenticator`.
 *
 * A signature covers the method, the path with its query, the body, sender and receiver, time, nonce, deadline, hop and
 * every header that the caller gave. The verifier returns only covered headers, because the others prove nothing.
 */

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { NODE_NAME } from "../../core/ids.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";
import type { ClusterKeys } from "./cluster-keys.ts";

export interface Claims {
  readonly from: NodeIdentity;
  /** Null: whoever gets it. */
  readonly to: NodeName | null;
  /** Wall time of the sender. */
  readonly time: number;
  readonly nonce: string;
  /** How long the sender waits, from `time` on; null for as long as it takes. */
  readonly deadlineMs: number | null;
  /** How often the call was passed on before. */
  readonly hop: number;
}

export interface Signed {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly body: string | Buffer;
}

export type ReceivedHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export type SignatureFault = "missing" | "malformed" | "unknown_key" | "bad_signature";

export type Verified =
  | {
      readonly valid: true;
      readonly claims: Claims;
      readonly keyId: string;
      readonly signature: Buffer;
      /** The covered headers only. */
      readonly headers: Readonly<Record<string, string>>;
    }
  | { readonly valid: false; readonly fault: SignatureFault; readonly reason: string };

const VERSION = "baton1";
export const HEADER = {
  from: "x-baton-from",
  incarnation: "x-baton-incarnation",
  to: "x-baton-to",
  time: "x-baton-time",
  nonce: "x-baton-nonce",
  deadline: "x-baton-deadline-ms",
  hop: "x-baton-hop",
  covered: "x-baton-covered",
  key: "x-baton-key",
  signature: "x-baton-signature",
} as const;

const OWN: ReadonlySet<string> = new Set(Object.values(HEADER));
/** What connections change on the way. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "host",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);

/** What would change the meaning of a call if somebody on the way could add it. */
const TELLING = /^(?:authorization|content-type|idempotency-key|last-event-id|x-baton-.*)$/;

const NONCE = /^[A-Za-z0-9_-]{16,64}$/;
const INCARNATION = /^[\x21-\x7e]{1,64}$/;
const KEY_ID = /^[A-Za-z0-9_-]{8}$/;
const SIGNATURE = /^[A-Za-z0-9_-]{43}$/;
const WHOLE = /^(?:0|[1-9]\d{0,14})$/;
const COVERED = /^(?:[a-z0-9!#$%&'*+.^_`|~-]+(?:;[a-z0-9!#$%&'*+.^_`|~-]+)*)?$/;

/** The given headers and those that sign them. */
export function sign(
  keys: ClusterKeys,
  request: Signed & { readonly headers?: Readonly<Record<string, string>> },
  claims: Claims,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    const lower = name.toLowerCase();
    if (!OWN.has(lower)) headers[lower] = value;
  }
  const covered = Object.keys(headers)
    .filter((name) => !OF_THE_CONNECTION.has(name))
    .sort();
  const signature = macOf(
    keys.first.key,
    request,
    claims,
    covered.map((name) => [name, headers[name]!.trim()]),
  );
  headers[HEADER.from] = claims.from.name;
  headers[HEADER.incarnation] = claims.from.incarnation;
  if (claims.to !== null) headers[HEADER.to] = claims.to;
  headers[HEADER.time] = String(claims.time);
  headers[HEADER.nonce] = claims.nonce;
  if (claims.deadlineMs !== null) headers[HEADER.deadline] = String(claims.deadlineMs);
  headers[HEADER.hop] = String(claims.hop);
  headers[HEADER.covered] = covered.join(";");
  headers[HEADER.key] = keys.first.id;
  headers[HEADER.signature] = signature.toString("base64url");
  return headers;
}

/** Names are expected in lower case, as Node gives them. */
export function verify(keys: ClusterKeys, request: Signed & { readonly headers: ReceivedHeaders }): Verified {
  const { headers } = request;
  if (headers[HEADER.signature] === undefined) return fault("missing", "the call is not signed");
  const read = (name: string, shape: RegExp): string => {
    const value = headers[name];
    // Sent twice, a header comes as a list or with a comma, and then nobody can say which one was meant.
    if (typeof value !== "string" || !shape.test(value)) throw new Malformed(name);
    return value;
  };
  const readIfThere = (name: string, shape: RegExp): string | null =>
    headers[name] === undefined ? null : read(name, shape);
  try {
    const deadline = readIfThere(HEADER.deadline, WHOLE);
    const claims: Claims = {
      from: {
        name: read(HEADER.from, NODE_NAME) as NodeName,
        incarnation: read(HEADER.incarnation, INCARNATION),
      },
      to: readIfThere(HEADER.to, NODE_NAME) as NodeName | null,
      time: Number(read(HEADER.time, WHOLE)),
      nonce: read(HEADER.nonce, NONCE),
      deadlineMs: deadline === null ? null : Number(deadline),
      hop: Number(read(HEADER.hop, WHOLE)),
    };
    const names = read(HEADER.covered, COVERED).split(";").filter(Boolean);
    const keyId = read(HEADER.key, KEY_ID);
    const given = Buffer.from(read(HEADER.signature, SIGNATURE), "base64url");
    const key = keys.accepted.get(keyId);
    if (!key) {
      const known = [...keys.accepted.keys()].join(" and ");
      return fault(
        "unknown_key",
        `${claims.from.name} signs with key ${keyId}, and here only ${known} is known: its cluster.secret differs from this node's`,
      );
    }
    const covered = names.map((name) => [name, read(name, ANY).trim()] as const);
    const expected = macOf(key.key, request, claims, covered);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
      return fault(
        "bad_signature",
        `the signature of a call from ${claims.from.name} does not fit: it was altered`,
      );
    }
    const added = Object.keys(headers).find(
      (name) => TELLING.test(name) && !OWN.has(name) && !names.includes(name),
    );
    if (added !== undefined) {
      return fault(
        "bad_signature",
        `the header ${added} was added to a call from ${claims.from.name} on its way`,
      );
    }
    return { valid: true, claims, keyId, signature: given, headers: Object.fromEntries(covered) };
  } catch (error) {
    if (error instanceof Malformed) return fault("malformed", error.message);
    throw error;
  }
}

const ANY = /^/;

class Malformed extends Error {
  constructor(header: string) {
    super(`the header ${header} of a signed call is missing or not of the right shape`);
  }
}

function fault(fault: SignatureFault, reason: string): Verified {
  return { valid: false, fault, reason };
}

/** As JSON, no two different calls give the same text, whatever their fields contain. */
function macOf(
  key: ClusterKeys["first"]["key"],
  { method, path, body }: Signed,
  { from, to, time, nonce, deadlineMs, hop }: Claims,
  covered: readonly (readonly [string, string])[],
): Buffer {
  const bodyHash = createHash("sha256").update(body).digest("base64url");
  const text = JSON.stringify([
    VERSION,
    method,
    path,
    bodyHash,
    from.name,
    from.incarnation,
    to,
    time,
    nonce,
    deadlineMs,
    hop,
    covered,
  ]);
  return createHmac("sha256", key).update(text).digest();
}
