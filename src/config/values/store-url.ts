/** The setting `store`: the name of an embedded store, or the URL of a database. Its password is never shown. */

import { nearest } from "../../core/errors.ts";
import { Mistake } from "../mistake.ts";
import { MASK, MASKED, maskedUrl } from "./server-url.ts";

export const EMBEDDED_STORES = ["sqlite", "memory"] as const;
export type EmbeddedStore = (typeof EMBEDDED_STORES)[number];
export type PostgresUrl = `postgres://${string}` | `postgresql://${string}`;
export type StoreSetting = EmbeddedStore | PostgresUrl;

const EXAMPLE = "postgres://user:password@host:5432/database";
/** Parameters that the driver takes for secrets. */
const SECRETS: ReadonlySet<string> = new Set(["password", "sslpassword"]);

export function isPostgresUrl(store: string): store is PostgresUrl {
  return /^postgres(?:ql)?:\/\//.test(store);
}

/** The value that was meant, or a `Mistake`, which repeats nothing of a URL but its scheme. */
export function readStore(found: unknown): StoreSetting {
  if (typeof found !== "string") throw new Mistake(`must be ${choices()}`);
  if (found === "sqlite" || found === "memory") return found;
  if (isPostgresUrl(found)) return checkedUrl(found);
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(found)?.[1];
  const named = scheme ?? found;
  // Anything longer may be a URL with a slip at its beginning, and a password further on.
  const shown = /^[\w-]{1,20}$/.test(named) ? `, not ${JSON.stringify(named)}` : "";
  if (/^rediss?$/i.test(named)) {
    throw new Mistake(
      `must be ${choices()}: ${named} keeps no jobs; beside a database it is the setting redis.url`,
    );
  }
  const guess = nearest(named, [...EMBEDDED_STORES, "postgres"]);
  const advice = guess === null ? "" : `; did you mean ${guess === "postgres" ? EXAMPLE : guess}?`;
  throw new Mistake(`must be ${choices()}${shown}${advice}`);
}

/** For people, logs and errors. Only the passwords are touched, so that the rest is as it was written. */
export function maskedStore(store: string): string {
  if (!isPostgresUrl(store)) return store;
  // Where the password ends is only known of a URL that can be read.
  if (parsed(store) === null) return `${store.split(":", 1)[0]}://${MASK}`;
  const [front, query] = split(store, "?");
  const shown = maskedUrl(front);
  if (query === null) return shown;
  const parameters = query.split("&").map((pair) => {
    const [name] = split(pair, "=");
    return isSecret(name) ? `${name}=${MASK}` : pair;
  });
  return `${shown}?${parameters.join("&")}`;
}

function choices(): string {
  return `${EMBEDDED_STORES.join(", ")} or a URL such as ${EXAMPLE}`;
}

function checkedUrl(text: PostgresUrl): PostgresUrl {
  const url = parsed(text);
  const astray = url !== null && (url.hash !== "" || (url.pathname + url.search).includes("@"));
  if (url === null || astray) {
    throw new Mistake(
      `must be a URL such as ${EXAMPLE}; write special characters of user and password in percent (# as %23, / as %2F, ? as %3F, @ as %40)`,
    );
  }
  const masked = [...url.searchParams].some(([name, value]) => isSecret(name) && value === MASK);
  if (url.password === MASK || masked) {
    throw new Mistake(MASKED);
  }
  if (url.hostname.includes(",")) {
    throw new Mistake("must name one host; put what finds the primary of several behind one name");
  }
  return text;
}

/** `user@/database?host=/run/postgresql` is a socket to the driver and no URL to anybody else. */
function parsed(text: string): URL | null {
  return URL.parse(text) ?? URL.parse(text.replace("@/", "@localhost/"));
}

function isSecret(name: string): boolean {
  // Written in percent it is the same parameter.
  return SECRETS.has([...new URLSearchParams(name).keys()][0] ?? "");
}

function split(text: string, at: string): [string, string | null] {
  const cut = text.indexOf(at);
  return cut < 0 ? [text, null] : [text.slice(0, cut), text.slice(cut + 1)];
}
