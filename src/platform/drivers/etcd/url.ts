/** The addresses of an etcd cluster, one for each member. Errors never contain the password. */

import { BatonError } from "../../../core/errors.ts";

export interface EtcdAddress {
  /** `http://host:2379`, each once, in the order in which they are tried. */
  readonly endpoints: readonly string[];
  readonly user: EtcdUser | null;
}

export interface EtcdUser {
  readonly name: string;
  readonly password: string;
}

const EXAMPLE = "http://host-a:2379,http://host-b:2379,http://host-c:2379";
const PORT = 2_379;

export function parseEtcdUrl(text: string): EtcdAddress {
  const parts = text.split(",").map((part) => part.trim());
  const urls = parts.map(parsed);
  const users = new Map(urls.flatMap(({ user }) => (user ? [[`${user.name}:${user.password}`, user]] : [])));
  if (users.size > 1) throw wrong("names several users; all members know the same one");
  return {
    endpoints: [...new Set(urls.map(({ endpoint }) => endpoint))],
    user: [...users.values()][0] ?? null,
  };
}

function parsed(text: string): { readonly endpoint: string; readonly user: EtcdUser | null } {
  const scheme = /^([a-z][a-z0-9+.-]{0,19}):\/\//i.exec(text)?.[1]?.toLowerCase();
  if (scheme !== "http" && scheme !== "https") {
    throw wrong(`must be one URL or several such as ${EXAMPLE}, or https:// for TLS${not(scheme)}`);
  }
  const url = URL.parse(text);
  if (url === null || url.hostname === "" || url.hash !== "" || (url.pathname + url.search).includes("@")) {
    throw wrong(
      `must be one URL or several such as ${EXAMPLE}; write special characters of user and password in percent (# as %23, / as %2F, ? as %3F, @ as %40, a comma as %2C)`,
    );
  }
  if (url.search !== "" || url.pathname !== "/") {
    throw wrong(`has something behind its port; what comes before our keys is the setting etcd.prefix`);
  }
  const [name, password] = [decoded(url.username), decoded(url.password)];
  if ((name === "") !== (password === "")) throw wrong("needs both of user and password, or none");
  return {
    // A URL forgets a port that is its scheme's, and etcd has another one.
    endpoint: `${url.protocol}//${url.hostname}:${/:(\d+)\/?$/.exec(text)?.[1] ?? PORT}`,
    user: name === "" ? null : { name, password },
  };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw wrong("has a % in its user or password that is no code; write a % as %25");
  }
}

function not(scheme: string | undefined): string {
  return scheme === undefined ? "" : `, not ${scheme}:`;
}

function wrong(what: string): BatonError {
  return new BatonError("BAD_CONFIG", `the URL of etcd ${what}`, { field: "etcd", problem: what });
}
