/**
 * The cookie of a session: for this site only, and not readable by scripts. Its value is base64url and needs no quoting.
 * No cookie plugin is used, because it would parse the cookies of every request.
 */

import { SESSION_MS_MAX } from "../../core/access/credential.ts";

export const SESSION_COOKIE = "baton_session";

/** `secure`: only ever sent over https. `path`: where it is sent, with all below. */
export interface CookieScope {
  readonly secure: boolean;
  readonly path: string;
}

export const EVERYWHERE: CookieScope = { secure: false, path: "/" };

export function sessionCookie(text: string, { secure, path }: CookieScope): string {
  // How long it counts is decided here, by its last use; a browser that is closed and opened again may keep it.
  const seconds = text === "" ? 0 : SESSION_MS_MAX / 1_000;
  const flags = `Max-Age=${seconds}; Path=${path}; HttpOnly; SameSite=Strict${secure ? "; Secure" : ""}`;
  return `${SESSION_COOKIE}=${text}; ${flags}`;
}

/** Null if there is none. Of two that differ nobody can say which one is meant. */
export function sessionIn(header: string | undefined): string | null {
  if (header === undefined || !header.includes(SESSION_COOKIE)) return null;
  const found = header
    .split(";")
    .map((part) => part.trim())
    .filter((part) => part.startsWith(`${SESSION_COOKIE}=`));
  const text = found[0]?.slice(SESSION_COOKIE.length + 1) ?? "";
  return text === "" || found.some((each) => each !== found[0]) ? null : text;
}
