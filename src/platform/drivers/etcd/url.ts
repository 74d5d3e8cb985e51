/** The addresses of an etcd cluster, one for each member. Errors never contain the password. */

import { parseServerUrl, wrongUrl, type UrlKind } from "../server-url.ts";

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
const KIND: UrlKind = {
  server: "etcd",
  field: "etcd",
  schemes: ["http", "https"],
  shape: `must be one URL or several such as ${EXAMPLE}`,
  tls: "https://",
  alsoEncoded: ", a comma as %2C",
};

export function parseEtcdUrl(text: string): EtcdAddress {
  const parts = text.split(",").map((part) => part.trim());
  const urls = parts.map(parsed);
  const users = new Map(urls.flatMap(({ user }) => (user ? [[`${user.name}:${user.password}`, user]] : [])));
  if (users.size > 1) throw wrongUrl(KIND, "names several users; all members know the same one");
  return {
    endpoints: [...new Set(urls.map(({ endpoint }) => endpoint))],
    user: [...users.values()][0] ?? null,
  };
}

function parsed(text: string): { readonly endpoint: string; readonly user: EtcdUser | null } {
  const { url, username: name, password } = parseServerUrl(text, KIND);
  if (url.search !== "" || url.pathname !== "/") {
    throw wrongUrl(
      KIND,
      "has something behind its port; the first part of our keys is the setting etcd.prefix",
    );
  }
  if ((name === "") !== (password === "")) throw wrongUrl(KIND, "needs both of user and password, or none");
  return {
    // A URL forgets a port that is its scheme's, and etcd has another one.
    endpoint: `${url.protocol}//${url.hostname}:${/:(\d+)\/?$/.exec(text)?.[1] ?? PORT}`,
    user: name === "" ? null : { name, password },
  };
}
