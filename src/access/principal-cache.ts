/**
 * Who was recognised on a connection, by what was shown there last: most callers show the same again with each request, and need not be
 * hashed each time. One for each connection, gone with it.
 *
 * It only saves the hash. Whether the credential still counts is asked of the book, whose `edition` tells that something has changed, and of
 * the clock, as before. What was shown is not kept in clear but under a pad of this process, so that no list of the memory's texts has it;
 * and it is compared in a time that depends on its length alone, because a proxy's connection carries requests of many.
 */

import type { Principal } from "../core/access/permissions.ts";
import type { Credential } from "../core/access/credential.ts";
import { newSecret } from "../platform/random.ts";
import { TEXT_LENGTH_MAX } from "./token-format.ts";

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
