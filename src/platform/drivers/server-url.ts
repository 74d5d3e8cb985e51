/** What the URLs of Redis and etcd have in common: scheme, host, user and password. Errors never contain the password. */

import { BatonError } from "../../core/errors.ts";

export interface UrlKind {
  /** Of the server, as people write it. */
  readonly server: string;
  /** The setting. */
  readonly field: string;
  readonly schemes: readonly string[];
  /** Such as `must be a URL such as redis://…`. */
  readonly shape: string;
  readonly tls: string;
  /** Further characters that have to be written in percent. */
  readonly alsoEncoded?: string;
}

export interface ServerUrl {
  readonly url: URL;
  /** Empty when there is none. */
  readonly username: string;
  readonly password: string;
}

export function parseServerUrl(text: string, kind: UrlKind): ServerUrl {
  const scheme = /^([a-z][a-z0-9+.-]{0,19}):\/\//i.exec(text)?.[1]?.toLowerCase();
  if (scheme === undefined || !kind.schemes.includes(scheme)) {
    throw wrongUrl(
      kind,
      `${kind.shape}, or ${kind.tls} for TLS${scheme === undefined ? "" : `, not ${scheme}:`}`,
    );
  }
  const url = URL.parse(text);
  if (url === null || url.hostname === "" || url.hash !== "" || (url.pathname + url.search).includes("@")) {
    throw wrongUrl(
      kind,
      `${kind.shape}; write special characters of user and password in percent (# as %23, / as %2F, ? as %3F, @ as %40${kind.alsoEncoded ?? ""})`,
    );
  }
  try {
    return {
      url,
      username: decodeURIComponent(url.username),
      password: decodeURIComponent(url.password),
    };
  } catch {
    throw wrongUrl(kind, "has a % in its user or password that is no code; write a % as %25");
  }
}

export function wrongUrl({ server, field }: UrlKind, problem: string): BatonError {
  return new BatonError("BAD_CONFIG", `the URL of ${server} ${problem}`, { field, problem });
}
