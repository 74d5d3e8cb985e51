/**
 * The format of tokens and sessions, and of their stored hashes. They are made of 256 random bits, so a plain SHA-256
 * is enough: such a text cannot be guessed. Passwords are different (passwords.ts).
 */

import { hash, hkdfSync, timingSafeEqual } from "node:crypto";
import { newSecret } from "../platform/random.ts";

/** Known at a glance, and by those who look for secrets in code that is about to be published. */
export const TOKEN_PREFIX = "baton_";
/** What is longer than any token of ours, or of a setting, is not even hashed. */
export const TEXT_LENGTH_MAX = 512;

export function newToken(): string {
  return TOKEN_PREFIX + newSecret();
}

/** The same for all who have the secret, and of no use to find it. */
export function agreedToken(secret: string): string {
  return (
    TOKEN_PREFIX +
    Buffer.from(hkdfSync("sha256", secret, "", "baton first token 1", 32)).toString("base64url")
  );
}

/** Null for what cannot be a token: empty, too long, or with a space or a control character in it. */
export function digestOf(text: string): string | null {
  if (text.length > TEXT_LENGTH_MAX || !PRINTABLE.test(text)) return null;
  return hash("sha256", text, "base64url");
}

const PRINTABLE = /^[\x21-\x7e]+$/;

/** Takes as long for one that is nearly right as for any other. */
export function sameDigest(a: string, b: string): boolean {
  const [one, two] = [Buffer.from(a), Buffer.from(b)];
  return one.length === two.length && timingSafeEqual(one, two);
}
