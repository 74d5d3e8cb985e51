/**
 * Keys derived from the cluster secret. The secret itself is neither used as a key nor sent.
 *
 * Two secrets may be valid at a time, so that the secret can be changed node by node without an outage: first every
 * node accepts the new one as its second, then each makes it its first, then the old one is removed.
 */

import { createSecretKey, hkdfSync } from "node:crypto";
import type { KeyObject } from "node:crypto";
import { BatonError } from "../../core/errors.ts";

export interface ClusterKey {
  /** Identifies the secret that a signature was made with, and reveals nothing about it. */
  readonly id: string;
  readonly key: KeyObject;
}

export interface ClusterKeys {
  /** Signs. */
  readonly first: ClusterKey;
  /** By id; all of them verify. */
  readonly accepted: ReadonlyMap<string, ClusterKey>;
}

const SECRETS_MAX = 2;
const KEY_BYTES = 32;

/** The first secret signs, both verify. How strong a secret has to be is the configuration's business. */
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
