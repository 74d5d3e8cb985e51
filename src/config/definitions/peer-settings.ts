/** The settings of a cluster of peers: its nodes, the join server, the secret, placement and timeouts. */

import { TIMER_MAX } from "./setting-definition.ts";
import type { Setting } from "./setting-definition.ts";

export const PEER_SETTINGS = [
  {
    path: "nodes",
    kind: "map",
    default: {},
    flag: "--nodes",
    about:
      "All nodes of the cluster, by name, with the URL at which the others reach each: the same on every node. This node is among them, and listens at the port of its URL unless `http.port` says otherwise.",
  },
  {
    path: "join",
    kind: "addresses",
    default: [],
    flag: "--join",
    about:
      "Nodes to join through, as `host:port` (their `manager.addr` if they have one). One that answers is enough; it is tried again until one does.",
  },
  {
    path: "discover",
    kind: "string",
    default: "",
    defaultIs: "empty",
    flag: "--discover",
    about:
      "A DNS name whose addresses are the nodes, looked up again and again: a headless service of Kubernetes, for one. Without a port in it that of `http.port` is meant; with `srv:` before it, SRV records tell addresses and ports.",
  },
  {
    path: "manager.addr",
    kind: "address",
    default: "",
    defaultIs: "empty",
    about:
      "Address of the join server, as `host:port`; `:2222` listens on all addresses. A node with one and nothing to join begins a cluster. Empty for none.",
  },
  {
    path: "manager.user",
    kind: "string",
    default: "",
    defaultIs: "empty",
    pattern: /^(?:[^:]{4,})?$/,
    patternIs: "have at least 4 characters, and no colon",
    about: "User that the join server asks for. The same on every node.",
  },
  {
    path: "manager.pass",
    kind: "string",
    secret: true,
    default: "",
    defaultIs: "empty",
    pattern: /^(?:[^]{4,})?$/,
    patternIs: "have at least 4 characters",
    about: "Password that the join server asks for. The same on every node.",
  },
  {
    path: "cluster.secret",
    kind: "string",
    secret: true,
    variable: "BATON_SECRET",
    default: "",
    defaultIs: "empty",
    about:
      "What the nodes sign their calls with: the same on every node, made by `baton secret create`. Two with a comma or a new line between them while it is changed: the first signs, both are believed.",
  },
  {
    path: "cluster.insecure",
    kind: "boolean",
    default: false,
    flag: "--insecure",
    about:
      "Start beyond this machine with a missing, short or well-known secret all the same: whoever reaches the port can act as a node.",
  },
  {
    path: "cluster.quorum",
    kind: "enum",
    default: "majority",
    values: ["majority", "none"],
    about:
      "Who must agree to a leader: a majority of all nodes, or whoever can be reached. With `none` a cluster that is cut in two has two leaders.",
  },
  {
    path: "cluster.order",
    kind: "enum",
    default: "text",
    values: ["text", "natural"],
    about:
      "Which of two nodes is the higher one and leads: `text` compares letter by letter (node9 is above node10), `natural` compares numbers in names as numbers.",
  },
  {
    path: "placement.strategy",
    kind: "enum",
    default: "global",
    values: ["global", "per-node", "local"],
    about:
      "Which node gets a new job: the next one of a round that all nodes share (`global`) or that each node counts alone (`per-node`), or the one that was asked (`local`).",
  },
  {
    path: "placement.state_file",
    kind: "path",
    default: "",
    defaultIs: "`placement.json` in `data`",
    about: "File in which the position of the round survives a restart.",
  },
  {
    path: "peers.request_timeout",
    kind: "duration",
    default: "5s",
    min: "50ms",
    max: TIMER_MAX,
    about:
      "How long a node waits for another one that it passed a request on to, unless the caller waits less.",
    smaller: "A busy owner looks unreachable, and callers get a 503 or 504 for jobs that are fine.",
  },
  {
    path: "peers.health_interval",
    kind: "duration",
    default: "1s",
    min: "50ms",
    max: TIMER_MAX,
    about:
      "How often nodes tell each other that they live, and how busy they are; `node.heartbeat` is not used here.",
    smaller: "More small calls between the nodes while nothing happens.",
  },
  {
    path: "peers.heartbeat_timeout",
    kind: "duration",
    default: "1200ms",
    min: "20ms",
    max: TIMER_MAX,
    about: "How long a heartbeat waits for its answer.",
    smaller: "On a slow network, or beside a busy processor, nodes look dead that are not.",
  },
  {
    path: "peers.election_timeout",
    kind: "duration",
    default: "500ms",
    min: "20ms",
    max: TIMER_MAX,
    about:
      "How long a candidate waits for answers, in each of the two rounds of an election; all nodes are asked at the same time.",
    smaller: "Votes come too late on a slow network, and elections are repeated.",
  },
  {
    path: "peers.forget_after",
    kind: "duration",
    default: "1h",
    min: "1s",
    about:
      "A node that joined and has been dead for so long is removed, and no longer counted for a majority; it may join again. Nodes listed in `nodes` are never removed.",
    smaller: "A machine that is being repaired has to join again.",
  },
] as const satisfies readonly Setting[];
