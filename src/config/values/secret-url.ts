/** Settings that are URLs with a password. A mistake repeats only the scheme of such a URL, and a password is never shown. */

import { join, resolve } from "node:path";
import { BatonError, nearest } from "../../core/errors.ts";
import { parseEtcdUrl, parseRedisUrl } from "../../platform/drivers/server-url.ts";
import { Mistake } from "../mistake.ts";

export const EMBEDDED_STORES = ["sqlite", "memory"] as const;
export type EmbeddedStore = (typeof EMBEDDED_STORES)[number];
export type PostgresUrl = `postgres://${string}` | `postgresql://${string}`;
export type StoreSetting = EmbeddedStore | `sqlite:${string}` | PostgresUrl;

export const MASK = "***";
/** For a password that was copied from what is shown. */
const MASKED = `has ${MASK} in place of its password, as \`baton config print\` shows it; write the real one`;

const EXAMPLE = "postgres://user:password@host:5432/database";
const STORES = `${EMBEDDED_STORES.join(", ")}, a file as sqlite:jobs.db, or a URL such as ${EXAMPLE}`;
const FILE = /^sqlite:(?!\/\/)(.+)$/;
const SECRETS: ReadonlySet<string> = new Set(["password", "sslpassword"]);

export function isPostgresUrl(store: string): store is PostgresUrl {
  return /^postgres(?:ql)?:\/\//.test(store);
}

/** The file of the embedded store; null where there is none. */
export function sqliteFile({
  store,
  data,
}: {
  readonly store: string;
  readonly data: string;
}): string | null {
  return store === "sqlite" ? join(data, "baton.db") : (FILE.exec(store)?.[1] ?? null);
}

/** A relative path of a file is taken from `directory`. */
export function readStore(found: unknown, directory: string): StoreSetting {
  if (typeof found !== "string") throw new Mistake(`must be ${STORES}`);
  if (found === "sqlite" || found === "memory") return found;
  const [, file] = FILE.exec(found) ?? [];
  if (file !== undefined) return `sqlite:${resolve(directory, file)}`;
  if (isPostgresUrl(found)) return checkedUrl(found);
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(found)?.[1];
  const named = scheme ?? found;
  // Anything longer may be a URL with a slip at its beginning, and a password further on.
  const shown = /^[\w-]{1,20}$/.test(named) ? `, not ${JSON.stringify(named)}` : "";
  if (/^rediss?$/i.test(named)) {
    throw new Mistake(
      `must be ${STORES}: ${named} keeps no jobs; beside a database it is the setting redis.url`,
    );
  }
  const guess = nearest(named, [...EMBEDDED_STORES, "postgres"]);
  const advice = guess === null ? "" : `; did you mean ${guess === "postgres" ? EXAMPLE : guess}?`;
  throw new Mistake(`must be ${STORES}${shown}${advice}`);
}

const SERVERS = {
  redis: {
    example: "a URL such as redis://user:password@host:6379/0",
    password: (url: string) => parseRedisUrl(url).password,
  },
  etcd: {
    example: "text such as http://host-a:2379,http://host-b:2379,http://host-c:2379",
    password: (urls: string) => parseEtcdUrl(urls).user?.password,
  },
} as const;

export function readServerUrl(kind: keyof typeof SERVERS, found: unknown): string {
  if (typeof found !== "string") throw new Mistake(`must be ${SERVERS[kind].example}`);
  if (found === "") return "";
  try {
    if (SERVERS[kind].password(found) !== MASK) return found;
  } catch (error) {
    if (!(error instanceof BatonError)) throw error;
    throw new Mistake(String(error.details["problem"]));
  }
  throw new Mistake(MASKED);
}

/** For people, logs and errors. Only passwords are replaced, so that the rest is as it was written. */
export function maskedUrl(text: string): string {
  // The end of the password is only known of a URL that can be read.
  if (isPostgresUrl(text) && parsed(text) === null) return `${text.split(":", 1)[0]}://${MASK}`;
  const [front, query] = isPostgresUrl(text) ? split(text, "?") : [text, null];
  const shown = front
    .split(/,(?=\s*\w+:\/\/)/)
    .map((url) => url.replace(/^(\s*\w+:\/\/[^/:]*):[^/]*@/, `$1:${MASK}@`))
    .join(",");
  if (query === null) return shown;
  const parameters = query.split("&").map((pair) => {
    const [name] = split(pair, "=");
    return isSecret(name) ? `${name}=${MASK}` : pair;
  });
  return `${shown}?${parameters.join("&")}`;
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
  if (url.password === MASK || masked) throw new Mistake(MASKED);
  if (url.hostname.includes(",")) {
    throw new Mistake("must name one host; put what finds the primary of several behind one name");
  }
  return text;
}

/** `user@/database?host=/run/postgresql` is a socket to the driver and no URL to others. */
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
