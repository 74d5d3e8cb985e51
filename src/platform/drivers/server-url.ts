/** The URLs of Redis and etcd servers. Errors never contain the password. */

import { BatonError } from "../../core/errors.ts";

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  readonly username: string | null;
  readonly password: string | null;
  readonly database: number;
}

const REDIS_EXAMPLE = "redis://user:password@host:6379/0";
const REDIS_PORT = 6_379;
const REDIS: UrlKind = {
  server: "Redis",
  field: "redis",
  schemes: ["redis", "rediss"],
  shape: `must be a URL such as ${REDIS_EXAMPLE}`,
  tls: "rediss://",
};

export function parseRedisUrl(text: string): RedisAddress {
  const { url, username, password } = parseServerUrl(text, REDIS);
  if (url.hostname.includes(",")) {
    throw wrongUrl(REDIS, "must name one host; put what finds the primary of several behind one name");
  }
  if (url.search !== "") {
    throw wrongUrl(
      REDIS,
      `takes no parameters after "?"; the number of the database is its path, as in ${REDIS_EXAMPLE}`,
    );
  }
  if (!/^(?:\/\d{0,4})?$/.test(url.pathname)) {
    throw wrongUrl(REDIS, `has a path that is no number of a database; write it as in ${REDIS_EXAMPLE}`);
  }
  if (username !== "" && password === "") {
    throw wrongUrl(REDIS, "names a user without a password; a user who needs none takes any");
  }
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? REDIS_PORT : Number(url.port),
    tls: url.protocol === "rediss:",
    username: username || null,
    password: password || null,
    database: Number(url.pathname.slice(1)),
  };
}

export function shownAddress({ host, port, tls, database }: RedisAddress): string {
  const at = host.includes(":") ? `[${host}]` : host;
  return `${tls ? "rediss" : "redis"}://${at}:${port}${database === 0 ? "" : `/${database}`}`;
}

/** The addresses of an etcd cluster, one for each member. */
export interface EtcdAddress {
  /** `http://host:2379`, each once, in the order in which they are tried. */
  readonly endpoints: readonly string[];
  readonly user: EtcdUser | null;
}

interface EtcdUser {
  readonly name: string;
  readonly password: string;
}

const ETCD_EXAMPLE = "http://host-a:2379,http://host-b:2379,http://host-c:2379";
const ETCD_PORT = 2_379;
const ETCD: UrlKind = {
  server: "etcd",
  field: "etcd",
  schemes: ["http", "https"],
  shape: `must be one URL or several such as ${ETCD_EXAMPLE}`,
  tls: "https://",
  alsoEncoded: ", a comma as %2C",
};

export function parseEtcdUrl(text: string): EtcdAddress {
  const parts = text.split(",").map((part) => part.trim());
  const urls = parts.map(parseMember);
  const users = new Map(urls.flatMap(({ user }) => (user ? [[`${user.name}:${user.password}`, user]] : [])));
  if (users.size > 1) throw wrongUrl(ETCD, "names several users; all members know the same one");
  return {
    endpoints: [...new Set(urls.map(({ endpoint }) => endpoint))],
    user: [...users.values()][0] ?? null,
  };
}

function parseMember(text: string): { readonly endpoint: string; readonly user: EtcdUser | null } {
  const { url, username: name, password } = parseServerUrl(text, ETCD);
  if (url.search !== "" || url.pathname !== "/") {
    throw wrongUrl(
      ETCD,
      "has something behind its port; the first part of our keys is the setting etcd.prefix",
    );
  }
  if ((name === "") !== (password === "")) throw wrongUrl(ETCD, "needs both of user and password, or none");
  return {
    // A URL forgets a port that is its scheme's, and etcd has another one.
    endpoint: `${url.protocol}//${url.hostname}:${/:(\d+)\/?$/.exec(text)?.[1] ?? ETCD_PORT}`,
    user: name === "" ? null : { name, password },
  };
}

interface UrlKind {
  readonly server: string;
  readonly field: string;
  readonly schemes: readonly string[];
  readonly shape: string;
  readonly tls: string;
  readonly alsoEncoded?: string;
}

interface ServerUrl {
  readonly url: URL;
  readonly username: string;
  readonly password: string;
}

function parseServerUrl(text: string, kind: UrlKind): ServerUrl {
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

function wrongUrl({ server, field }: UrlKind, problem: string): BatonError {
  return new BatonError("BAD_CONFIG", `the URL of ${server} ${problem}`, { field, problem });
}
