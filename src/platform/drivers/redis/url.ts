/** The URL of a Redis server. Errors never contain the password. */

import { BatonError } from "../../../core/errors.ts";

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  readonly username: string | null;
  readonly password: string | null;
  readonly database: number;
}

const EXAMPLE = "redis://user:password@host:6379/0";
const PORT = 6_379;
const SCHEMES: ReadonlySet<string> = new Set(["redis:", "rediss:"]);

export function parseRedisUrl(text: string): RedisAddress {
  const scheme = /^([a-z][a-z0-9+.-]{0,19}):/i.exec(text)?.[1]?.toLowerCase();
  if (!SCHEMES.has(`${scheme}:`)) {
    throw wrong(`must be a URL such as ${EXAMPLE}, or rediss:// for TLS${scheme ? `, not ${scheme}:` : ""}`);
  }
  const url = URL.parse(text);
  if (url === null || url.hostname === "" || url.hash !== "" || (url.pathname + url.search).includes("@")) {
    throw wrong(
      `must be a URL such as ${EXAMPLE}; write special characters of user and password in percent (# as %23, / as %2F, ? as %3F, @ as %40)`,
    );
  }
  if (url.hostname.includes(",")) {
    throw wrong("must name one host; put what finds the primary of several behind one name");
  }
  if (url.search !== "") {
    throw wrong(`takes no parameters after "?"; the number of the database is its path, as in ${EXAMPLE}`);
  }
  if (!/^(?:\/\d{0,4})?$/.test(url.pathname)) {
    throw wrong(`has a path that is no number of a database; write it as in ${EXAMPLE}`);
  }
  const username = decoded(url.username);
  const password = decoded(url.password);
  if (username !== null && password === null) {
    throw wrong("names a user without a password; a user who needs none takes any");
  }
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? PORT : Number(url.port),
    tls: url.protocol === "rediss:",
    username,
    password,
    database: Number(url.pathname.slice(1)),
  };
}

/** For people, logs and errors. */
export function shownAddress({ host, port, tls, database }: RedisAddress): string {
  const at = host.includes(":") ? `[${host}]` : host;
  return `${tls ? "rediss" : "redis"}://${at}:${port}${database === 0 ? "" : `/${database}`}`;
}

function decoded(part: string): string | null {
  if (part === "") return null;
  try {
    return decodeURIComponent(part);
  } catch {
    throw wrong("has a % in its user or password that is no code; write a % as %25");
  }
}

function wrong(what: string): BatonError {
  return new BatonError("BAD_CONFIG", `the URL of Redis ${what}`, { field: "redis", problem: what });
}
