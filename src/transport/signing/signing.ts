/**
 * Signs the request that opens a connection between two nodes, and verifies it. Its age, its receiver and replays are
 * checked by the `Authenticator`. Calls are not signed one by one: the connection seals them (mesh/frame.ts).
 *
 * Keys are derived from the cluster secret. The secret itself is neither used as a key nor sent. Two secrets may be
 * valid at a time, so that the secret can be changed node by node without an outage: first every node accepts the new
 * one as its second, then each makes it its first, then the old one is removed.
 */

import { createHmac, createSecretKey, hkdfSync, timingSafeEqual, type KeyObject } from "node:crypto";
import { BatonError } from "../../core/errors.ts";
import { NODE_NAME, type NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";

export interface Claims {
  readonly from: NodeIdentity;
  /** Null while the caller does not know the name of the node at that address. */
  readonly to: NodeName | null;
  readonly time: number;
  readonly nonce: string;
  readonly use: ConnectionUse;
}

/** `shared`: all small calls between two nodes. `single`: one call with a stream or a large body. */
export type ConnectionUse = "shared" | "single";

export type ReceivedHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export type SignatureFault = "missing" | "malformed" | "unknown_key" | "bad_signature";

type Verified =
  | { readonly valid: true; readonly claims: Claims; readonly keyId: string; readonly signature: Buffer }
  | { readonly valid: false; readonly fault: SignatureFault; readonly reason: string };

const VERSION = "baton2";
export const HEADER = {
  from: "x-baton-from",
  incarnation: "x-baton-incarnation",
  to: "x-baton-to",
  time: "x-baton-time",
  nonce: "x-baton-nonce",
  use: "x-baton-use",
  key: "x-baton-key",
  signature: "x-baton-signature",
} as const;

export const NONCE = /^[A-Za-z0-9_-]{16,64}$/;
export const INCARNATION = /^[\x21-\x7e]{1,64}$/;
/** 32 bytes as base64url. */
export const MAC = /^[A-Za-z0-9_-]{43}$/;
const KEY_ID = /^[A-Za-z0-9_-]{8}$/;
const WHOLE = /^(?:0|[1-9]\d{0,14})$/;
const USE = /^(?:shared|single)$/;

export function sign(keys: ClusterKeys, claims: Claims): Record<string, string> {
  const { from, to, time, nonce, use } = claims;
  return {
    [HEADER.from]: from.name,
    [HEADER.incarnation]: from.incarnation,
    ...(to !== null && { [HEADER.to]: to }),
    [HEADER.time]: String(time),
    [HEADER.nonce]: nonce,
    [HEADER.use]: use,
    [HEADER.key]: keys.first.id,
    [HEADER.signature]: macOf(keys.first, claims).toString("base64url"),
  };
}

/** Names are expected in lower case, as Node gives them. */
export function verify(keys: ClusterKeys, headers: ReceivedHeaders): Verified {
  if (headers[HEADER.signature] === undefined) return fault("missing", "the request is not signed");
  const read = (name: string, shape: RegExp): string => {
    const value = headers[name];
    // A header that was sent twice arrives as a list or with a comma, and either value could be meant.
    if (typeof value !== "string" || !shape.test(value)) throw new Malformed(name);
    return value;
  };
  try {
    const claims: Claims = {
      from: {
        name: read(HEADER.from, NODE_NAME) as NodeName,
        incarnation: read(HEADER.incarnation, INCARNATION),
      },
      to: headers[HEADER.to] === undefined ? null : (read(HEADER.to, NODE_NAME) as NodeName),
      time: Number(read(HEADER.time, WHOLE)),
      nonce: read(HEADER.nonce, NONCE),
      use: read(HEADER.use, USE) as ConnectionUse,
    };
    const keyId = read(HEADER.key, KEY_ID);
    const signature = Buffer.from(read(HEADER.signature, MAC), "base64url");
    const key = keys.accepted.get(keyId);
    if (!key) {
      const known = [...keys.accepted.keys()].join(" and ");
      return fault(
        "unknown_key",
        `${claims.from.name} signs with key ${keyId}, and here only ${known} is known: its cluster.secret differs from this node's`,
      );
    }
    if (timingSafeEqual(signature, macOf(key, claims))) return { valid: true, claims, keyId, signature };
    return fault(
      "bad_signature",
      `the signature of a request from ${claims.from.name} is wrong: it was altered`,
    );
  } catch (error) {
    if (error instanceof Malformed) return fault("malformed", error.message);
    throw error;
  }
}

class Malformed extends Error {
  constructor(header: string) {
    super(`the header ${header} of a signed request is missing or malformed`);
  }
}

function fault(fault: SignatureFault, reason: string): Verified {
  return { valid: false, fault, reason };
}

/** As JSON, no two different claims give the same text, whatever their fields contain. */
function macOf({ key }: ClusterKey, { from, to, time, nonce, use }: Claims): Buffer {
  const text = JSON.stringify([VERSION, from.name, from.incarnation, to, time, nonce, use]);
  return createHmac("sha256", key).update(text).digest();
}

export interface ClusterKey {
  /** Identifies the secret that a signature was made with, and reveals nothing about it. */
  readonly id: string;
  readonly key: KeyObject;
}

export interface ClusterKeys {
  readonly first: ClusterKey;
  /** By id; all of them verify. */
  readonly accepted: ReadonlyMap<string, ClusterKey>;
}

const SECRETS_MAX = 2;
const KEY_BYTES = 32;

/** How strong a secret has to be is the configuration's business. */
export function clusterKeys(secrets: readonly string[]): ClusterKeys {
  const field = { field: "cluster.secret" };
  if (secrets.length === 0 || secrets.some((secret) => secret.trim() === "")) {
    throw new BatonError("BAD_CONFIG", "cluster.secret is empty; make one with: baton secret create", field);
  }
  if (secrets.length > SECRETS_MAX) {
    throw new BatonError(
      "BAD_CONFIG",
      `cluster.secret has ${secrets.length} secrets; one that signs and at most one older or newer that is accepted too`,
      field,
    );
  }
  const keys = secrets.map(clusterKey);
  return { first: keys[0]!, accepted: new Map(keys.map((key) => [key.id, key])) };
}

function clusterKey(secret: string): ClusterKey {
  const id = Buffer.from(hkdfSync("sha256", secret, "", "baton key id 1", 6)).toString("base64url");
  const bytes = Buffer.from(hkdfSync("sha256", secret, "", "baton signing 1", KEY_BYTES));
  return { id, key: createSecretKey(bytes) };
}

/** A key for one purpose. `info` must name everything that distinguishes this use from any other. */
export function derivedKey({ key }: ClusterKey, salt: string, info: readonly string[]): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync("sha256", key, salt, JSON.stringify(info), KEY_BYTES)));
}
