/**
 * The principal that was last authenticated on a connection. Most callers send the same credential with each request,
 * and it need not be hashed each time. There is one cache per connection, which ends with it.
 *
 * It only saves the hash. The validity of the credential is still checked against the credential cache, whose `edition`
 * changes with every change, and against the clock. The credential is not kept in clear but masked with a pad of this
 * process, so that a dump of strings in memory does not contain it. It is compared in a time that depends on its length
 * alone, because the connection of a proxy carries requests of many callers.
 */

import type { Principal } from "../core/access/permissions.ts";
import type { Credential } from "../core/access/credential.ts";
import { newSecret } from "../platform/random.ts";
import { TEXT_LENGTH_MAX } from "./token-service.ts";

/** `credential` is null for one that does not change while the node runs. */
export interface CachedPrincipal {
  readonly principal: Principal;
  readonly credential: Credential | null;
}

interface Seen {
  readonly by: string;
  readonly masked: Uint8Array;
  readonly edition: number;
  readonly known: CachedPrincipal;
}

export class PrincipalCache {
  readonly #seen = new WeakMap<object, Seen>();
  readonly #pad = newPad();

  /** Null for what must be looked at anew. */
  find(connection: object, by: string, text: string, edition: number): CachedPrincipal | null {
    const seen = this.#seen.get(connection);
    if (seen === undefined || seen.edition !== edition || seen.by !== by) return null;
    return this.#isSame(text, seen.masked) ? seen.known : null;
  }

  keep(connection: object, by: string, text: string, edition: number, known: CachedPrincipal): void {
    // On a proxy's connection the next caller is often another one, with a token as long.
    const before = this.#seen.get(connection)?.masked;
    const masked = before?.length === text.length ? before : new Uint8Array(text.length);
    for (let at = 0; at < masked.length; at++) masked[at] = text.charCodeAt(at) ^ this.#pad[at]!;
    this.#seen.set(connection, { by, masked, edition, known });
  }

  #isSame(text: string, masked: Uint8Array): boolean {
    const { length } = masked;
    if (text.length !== length) return false;
    const pad = this.#pad;
    let different = 0;
    for (let at = 0; at < length; at++) different |= text.charCodeAt(at) ^ pad[at]! ^ masked[at]!;
    return different === 0;
  }
}

function newPad(): Uint8Array {
  const pad = new Uint8Array(TEXT_LENGTH_MAX);
  for (let at = 0; at < TEXT_LENGTH_MAX; at += 32) pad.set(Buffer.from(newSecret(), "base64url"), at);
  return pad;
}
