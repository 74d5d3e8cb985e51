/** The settings of a cluster: the roles of the node, the database, heartbeats, and the election. */

import { NODE_NAME } from "../../core/ids.ts";
import { NODE_ROLES } from "../../core/node.ts";
import { PROFILE_NAMES } from "./profiles.ts";
import { TIMER_MAX } from "./setting-definition.ts";
import type { Setting } from "./setting-definition.ts";

export const CLUSTER_SETTINGS = [
  {
    path: "profile",
    kind: "enum",
    default: "lan",
    values: PROFILE_NAMES,
    flag: "--profile",
    about:
      "A set of defaults: `lan` notices a death within a second or so, `forge` is calm (leases of a minute, heartbeats of 5s), `langid`, `ghoti` and `orchestrix` have the times of those systems. What you set yourself wins over it.",
  },
  {
    path: "roles",
    kind: "list",
    default: NODE_ROLES,
    values: NODE_ROLES,
    flag: "--roles",
    about:
      "What this node does: `gateway` answers callers, `function` runs tasks for callers who wait, `worker` runs jobs, `scheduler` may lead.",
  },
  {
    path: "postgres.schema",
    kind: "string",
    default: "baton",
    // Names that begin with pg_ are PostgreSQL's own.
    pattern: /^(?!pg_)[a-z_][a-z0-9_]{0,62}$/,
    patternIs: "be 1 to 63 lower-case letters, digits or _, begin with a letter or _ and not with pg_",
    about: "Schema of the tables. Clusters that share a database have different ones.",
  },
  {
    path: "postgres.connections",
    kind: "integer",
    default: 10,
    min: 2,
    max: 1_000,
    about:
      "Most connections in this node's pool. A few more are held for leadership and messages; all nodes together must stay below the server's `max_connections`.",
    smaller: "Claims, results and callers wait for each other.",
  },
  {
    path: "postgres.wait",
    kind: "duration",
    default: "30s",
    min: "0ms",
    max: TIMER_MAX,
    about:
      "How long a node that starts waits for a database that cannot be reached; then it ends with the reason. A node that runs waits for ever.",
    smaller: "Nodes that start before their database have to be started again.",
  },
  {
    path: "cluster.name",
    kind: "string",
    default: "baton",
    pattern: NODE_NAME,
    about: "Name of the cluster, for people.",
  },
  {
    path: "cluster.minimum_nodes",
    kind: "integer",
    default: 1,
    min: 1,
    max: 10_000,
    flag: "--minimum-nodes",
    about:
      "How many nodes must have gathered before callers are served; until then changes are refused with `503 CLUSTER_FORMING` and `/readyz` fails.",
    smaller: "The first node of a cluster that starts takes everybody's work.",
  },
  {
    path: "node.heartbeat",
    kind: "duration",
    default: "1s",
    min: "50ms",
    max: TIMER_MAX,
    about: "How often a node says that it lives, and how busy it is.",
    smaller: "More writes to the store while nothing happens.",
  },
  {
    path: "node.dead_after",
    kind: "duration",
    default: "5s",
    min: "100ms",
    max: TIMER_MAX,
    about:
      "A node that said nothing for so long is taken for dead and its jobs run elsewhere. A process that ends is noticed at once, by its broken connection.",
    smaller: "A short pause of a node makes its jobs run a second time.",
  },
  {
    path: "node.forget_after",
    kind: "duration",
    default: "1h",
    min: "1s",
    about: "How long a dead node stays in the list of nodes.",
    smaller: "Nobody sees any more which node is missing.",
  },
  {
    path: "leader.lease",
    kind: "duration",
    default: "5s",
    min: "100ms",
    max: TIMER_MAX,
    about: "How long a leader that says nothing still leads.",
    smaller: "A short pause of the leader costs its term.",
  },
  {
    path: "leader.renew",
    kind: "duration",
    default: "1s",
    min: "10ms",
    max: TIMER_MAX,
    about: "How often the leader renews its lease.",
    smaller: "More writes to the store while nothing happens.",
  },
  {
    path: "leader.margin",
    kind: "duration",
    default: "1500ms",
    min: "0ms",
    max: TIMER_MAX,
    about: "How long before the end of its lease a leader stops trusting it.",
    smaller:
      "A clock that runs slow lets a leader act after its lease has ended; its writes are refused then.",
  },
  {
    path: "leader.retry",
    kind: "duration",
    default: "500ms",
    min: "10ms",
    max: TIMER_MAX,
    about: "How often a standby tries to lead.",
    smaller: "More load on the lock while a leader is alive.",
  },
] as const satisfies readonly Setting[];

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
