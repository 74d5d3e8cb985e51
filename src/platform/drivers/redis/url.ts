/** The URL of a Redis server. Errors never contain the password. */

import { parseServerUrl, wrongUrl, type UrlKind } from "../server-url.ts";

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
const KIND: UrlKind = {
  server: "Redis",
  field: "redis",
  schemes: ["redis", "rediss"],
  shape: `must be a URL such as ${EXAMPLE}`,
  tls: "rediss://",
};

export function parseRedisUrl(text: string): RedisAddress {
  const { url, username, password } = parseServerUrl(text, KIND);
  if (url.hostname.includes(",")) {
    throw wrongUrl(KIND, "must name one host; put what finds the primary of several behind one name");
  }
  if (url.search !== "") {
    throw wrongUrl(
      KIND,
      `takes no parameters after "?"; the number of the database is its path, as in ${EXAMPLE}`,
    );
  }
  if (!/^(?:\/\d{0,4})?$/.test(url.pathname)) {
    throw wrongUrl(KIND, `has a path that is no number of a database; write it as in ${EXAMPLE}`);
  }
  if (username !== "" && password === "") {
    throw wrongUrl(KIND, "names a user without a password; a user who needs none takes any");
  }
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? PORT : Number(url.port),
    tls: url.protocol === "rediss:",
    username: username || null,
    password: password || null,
    database: Number(url.pathname.slice(1)),
  };
}

/** For people, logs and errors. */
export function shownAddress({ host, port, tls, database }: RedisAddress): string {
  const at = host.includes(":") ? `[${host}]` : host;
  return `${tls ? "rediss" : "redis"}://${at}:${port}${database === 0 ? "" : `/${database}`}`;
}
