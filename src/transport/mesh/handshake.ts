/**
 * How two nodes prove to each other that they know the cluster secret, and derive the keys of one connection.
 *
 *   dialler -> GET /peer/mesh, signed, with its nonce
 *   server  -> 101, its name, its own nonce, and a proof over both nonces and both names
 *   dialler -> a first frame under the session's key: only this convinces the server, because the signed request alone
 *              could have been recorded elsewhere
 *
 * Each direction has its own key, derived from the cluster key and both nonces, so that nothing from one connection is
 * valid in another. The traffic is authenticated, not encrypted: where others can read it, use TLS (https:// urls).
 */

import { createHmac, timingSafeEqual, type KeyObject } from "node:crypto";
import { NODE_NAME, type NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";
import {
  derivedKey,
  HEADER,
  INCARNATION,
  MAC,
  NONCE,
  sign,
  type ClusterKey,
  type ClusterKeys,
  type Claims,
  type ReceivedHeaders,
} from "../signing/signing.ts";

export const MESH_PATH = "/peer/mesh";
const MESH_VERSION = "2";
const VERSION_HEADER = "x-baton-mesh";
const PROOF_HEADER = "x-baton-proof";
/** In the answer to a node that was not believed. */
export const REFUSAL_HEADER = "x-baton-peer-refusal";

export interface SessionKeys {
  readonly send: KeyObject;
  readonly receive: KeyObject;
}

export function greet(keys: ClusterKeys, claims: Claims): Record<string, string> {
  return { [VERSION_HEADER]: MESH_VERSION, ...sign(keys, claims) };
}

interface Pair {
  readonly dialler: NodeIdentity;
  readonly server: NodeIdentity;
  readonly diallerNonce: string;
  readonly serverNonce: string;
}

/** The server's headers, and what it uses from then on. */
export function welcome(
  keys: ClusterKeys,
  self: NodeIdentity,
  nonce: string,
  claims: Claims,
  keyId: string,
): { readonly headers: Record<string, string>; readonly session: SessionKeys } {
  const key = keys.accepted.get(keyId)!;
  const pair = { dialler: claims.from, server: self, diallerNonce: claims.nonce, serverNonce: nonce };
  const { up, down } = sessionKeys(key, pair);
  return {
    headers: {
      [VERSION_HEADER]: MESH_VERSION,
      [HEADER.from]: self.name,
      [HEADER.incarnation]: self.incarnation,
      [HEADER.nonce]: nonce,
      [PROOF_HEADER]: proofOf(key, pair).toString("base64url"),
    },
    session: { send: down, receive: up },
  };
}

type Welcomed = { readonly peer: NodeIdentity; readonly session: SessionKeys } | { readonly refused: string };

/** What the dialler makes of the server's headers. */
export function checkWelcome(keys: ClusterKeys, claims: Claims, headers: ReceivedHeaders): Welcomed {
  const text = (name: string, shape: RegExp): string | null => {
    const value = headers[name];
    return typeof value === "string" && shape.test(value) ? value : null;
  };
  if (headers[VERSION_HEADER] !== MESH_VERSION)
    return { refused: "it does not speak this version of the mesh" };
  const name = text(HEADER.from, NODE_NAME) as NodeName | null;
  const incarnation = text(HEADER.incarnation, INCARNATION);
  const nonce = text(HEADER.nonce, NONCE);
  const proof = text(PROOF_HEADER, MAC);
  if (!name || !incarnation || !nonce || !proof) return { refused: "it does not prove who it is" };
  const server = { name, incarnation };
  const pair = { dialler: claims.from, server, diallerNonce: claims.nonce, serverNonce: nonce };
  const expected = proofOf(keys.first, pair);
  if (!timingSafeEqual(Buffer.from(proof, "base64url"), expected)) {
    return { refused: `what calls itself ${name} does not know the cluster's secret` };
  }
  if (claims.to !== null && claims.to !== name) {
    return { refused: `it is ${name}, not ${claims.to}` };
  }
  const { up, down } = sessionKeys(keys.first, pair);
  return { peer: server, session: { send: up, receive: down } };
}

function proofOf({ key }: ClusterKey, pair: Pair): Buffer {
  return createHmac("sha256", key)
    .update(JSON.stringify(["baton mesh server 2", ...facts(pair)]))
    .digest();
}

function sessionKeys(key: ClusterKey, pair: Pair): { readonly up: KeyObject; readonly down: KeyObject } {
  const salt = `${pair.diallerNonce} ${pair.serverNonce}`;
  return {
    up: derivedKey(key, salt, ["baton mesh up 2", ...facts(pair)]),
    down: derivedKey(key, salt, ["baton mesh down 2", ...facts(pair)]),
  };
}

function facts({ dialler, server, diallerNonce, serverNonce }: Pair): string[] {
  return [dialler.name, dialler.incarnation, server.name, server.incarnation, diallerNonce, serverNonce];
}
