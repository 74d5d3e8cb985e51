/** The settings of etcd. */

import type { Setting } from "./setting-definition.ts";

export const ETCD_SETTINGS = [
  {
    path: "etcd.url",
    kind: "etcd",
    default: "",
    defaultIs: "none",
    flag: "--etcd",
    variable: "BATON_ETCD",
    about:
      "An etcd (3.4 or newer) beside `store: postgres://…`, as `http://user:password@host:2379` or `https://` for TLS, its members with commas between them: it elects the leader and knows the nodes. Messages stay with the database. Not together with `redis.url`.",
  },
  {
    path: "etcd.prefix",
    kind: "string",
    default: "baton",
    pattern: /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/,
    patternIs: "consist of up to 63 letters, digits and ._- and begin and end with a letter or digit",
    about: "First part of all keys, before a slash. Clusters that share an etcd have different ones.",
  },
] as const satisfies readonly Setting[];
