/** The settings of nodes that work together: leader, shared servers, push dispatch, peers, agents, node-controller. */

import { NODE_NAME } from "../../core/ids.ts";
import {
  address,
  age,
  boolean,
  duration,
  integer,
  list,
  number,
  oneOf,
  path,
  secret,
  server,
  text,
} from "./setting-definition.ts";

export const CLUSTER_SECTIONS = {
  cluster: {
    name: text("baton", { pattern: NODE_NAME, about: "Name of the cluster, for people." }),
    minimum_nodes: integer(1, [1, 10_000], {
      flag: "--minimum-nodes",
      about:
        "How many nodes must have gathered before callers are served; until then changes are refused with `503 CLUSTER_FORMING` and `/readyz` fails.",
      smaller: "The first node of a cluster that starts takes everybody's work.",
    }),
    secret: secret({
      variable: "BATON_SECRET",
      about:
        "What the nodes sign their calls with: the same on every node, made by `baton secret create`. Two with a comma or a new line between them while it is changed: the first signs, both are believed.",
    }),
    insecure: boolean(false, {
      flag: "--insecure",
      about:
        "Start beyond this machine with a missing, short or well-known secret all the same: whoever reaches the port can act as a node.",
    }),
    quorum: oneOf("majority", ["majority", "none"], {
      about:
        "Who must agree to a leader: a majority of all nodes, or whoever can be reached. With `none` a cluster that is cut in two has two leaders.",
    }),
    order: oneOf("text", ["text", "natural"], {
      about:
        "Which of two nodes is the higher one and leads: `text` compares letter by letter (node9 is above node10), `natural` compares numbers in names as numbers.",
    }),
  },
  node: {
    heartbeat: duration("1s", "50ms", {
      about: "How often a node says that it lives, and how busy it is.",
      smaller: "More writes to the store while nothing happens.",
    }),
    dead_after: duration("5s", "100ms", {
      about:
        "A node that said nothing for so long is taken for dead and its jobs run elsewhere. A process that ends is noticed at once, by its broken connection.",
      smaller: "A short pause of a node makes its jobs run a second time.",
    }),
    forget_after: age("1h", "1s", {
      about: "How long a dead node stays in the list of nodes.",
      smaller: "Nobody sees any more which node is missing.",
    }),
  },
  leader: {
    lease: duration("5s", "100ms", {
      about: "How long a leader that says nothing still leads.",
      smaller: "A short pause of the leader costs its term.",
    }),
    renew: duration("1s", "10ms", {
      about: "How often the leader renews its lease.",
      smaller: "More writes to the store while nothing happens.",
    }),
    margin: duration("1500ms", "0ms", {
      about: "How long before the end of its lease a leader stops trusting it.",
      smaller:
        "A clock that runs slow lets a leader act after its lease has ended; its writes are refused then.",
    }),
    retry: duration("500ms", "10ms", {
      about: "How often a standby tries to lead.",
      smaller: "More load on the lock while a leader is alive.",
    }),
  },
  postgres: {
    schema: text("baton", {
      // Names that begin with pg_ are PostgreSQL's own.
      pattern: /^(?!pg_)[a-z_][a-z0-9_]{0,62}$/,
      patternIs: "be 1 to 63 lower-case letters, digits or _, begin with a letter or _ and not with pg_",
      about: "Schema of the tables. Clusters that share a database have different ones.",
    }),
    connections: integer(10, [2, 1_000], {
      about:
        "Most connections in this node's pool. A few more are held for leadership and messages; all nodes together must stay below the server's `max_connections`.",
      smaller: "Claims, results and callers wait for each other.",
    }),
    wait: duration("30s", "0ms", {
      about:
        "How long a node that starts waits for a database that cannot be reached; then it ends with the reason. A node that runs waits for ever.",
      smaller: "Nodes that start before their database have to be started again.",
    }),
  },
  redis: {
    url: server("redis", {
      flag: "--redis",
      variable: "BATON_REDIS",
      about:
        "A Redis (6.2 or newer) in addition to `store: postgres://…`, as `redis://user:password@host:6379/0` or `rediss://` for TLS. It elects the leader and carries messages, and jobs are pushed to workers. The list of nodes stays in the database, and whatever Redis loses is restored from there.",
    }),
    prefix: text("baton", {
      pattern: NODE_NAME,
      about: "First part of all keys, in braces. Clusters that share a Redis have different ones.",
    }),
  },
  etcd: {
    url: server("etcd", {
      flag: "--etcd",
      variable: "BATON_ETCD",
      about:
        "An etcd (3.4 or newer) in addition to `store: postgres://…`, as `http://user:password@host:2379` or `https://` for TLS, with its members separated by commas. It elects the leader. The list of nodes and the messages stay in the database. Not together with `redis.url`.",
    }),
    prefix: text("baton", {
      pattern: NODE_NAME,
      patternIs: "consist of up to 63 letters, digits and ._- and begin and end with a letter or digit",
      about: "First part of all keys, before a slash. Clusters that share an etcd have different ones.",
    }),
  },
  dispatch: {
    mode: oneOf("pull", ["pull", "push"], {
      flag: "--dispatch",
      about:
        "How jobs get to workers: with `pull` each takes them out of the store, which is faster; with `push` the leader dispatches them and one node owns the events of each. All nodes of a cluster have the same.",
    }),
    timeout: duration("5s", "100ms", {
      about:
        "A job that was dispatched and that no worker accepted for so long is dispatched again; a result that its owner did not confirm for so long is written by the worker itself.",
      smaller: "Jobs that wait for a busy worker are taken back and dispatched again and again.",
    }),
  },
  handoff: {
    ack_timeout: duration("2s", "50ms", {
      about:
        "How long a node that hands jobs over waits for a sign before it looks into the store and offers them again.",
      smaller: "Jobs are offered again while another node is about to take them.",
    }),
    tries: integer(3, [1, 100], {
      about: "How often jobs are offered before they are left to the leader as `orphan_pending`.",
    }),
    orphan_wait: duration("5s", "0ms", {
      about: "How long a draining node waits for somebody to take what it has left as `orphan_pending`.",
      smaller: "The drain ends as released where it might have ended as drained.",
    }),
    hard_timeout: duration("20s", "0ms", {
      about:
        "Longest time that handing over may take in all; then what is left belongs to nobody, and the leader finds it. Keep it below what the supervisor grants.",
      smaller: "More jobs are without an owner for a moment.",
    }),
    orphan_check: duration("1s", "50ms", {
      about:
        "How often the leader looks for jobs without an owner. Those of a node that was found dead are offered at once.",
      smaller: "More queries while nothing happens.",
    }),
  },
  rebalance: {
    enabled: boolean(true, { about: "Whether a node that owns far more jobs than another hands some over." }),
    ratio: number(2, [1.1, 100], {
      about:
        "How many times the jobs of the least loaded node one must own to hand half of the difference over.",
      smaller: "Jobs change hands for small differences.",
    }),
    interval: duration("10s", "100ms", {
      about: "Shortest time between two such moves of a node.",
      smaller: "Jobs move to and fro while the numbers are still on their way.",
    }),
  },
  manager: {
    addr: address({
      about:
        "Address of the join server, as `host:port`; `:2222` listens on all addresses. A node with one and nothing to join begins a cluster. Empty for none.",
    }),
    user: text("", {
      defaultIs: "empty",
      pattern: /^(?:[^:]{4,})?$/,
      patternIs: "have at least 4 characters, and no colon",
      about: "User that the join server asks for. The same on every node.",
    }),
    pass: secret({
      pattern: /^(?:[^]{4,})?$/,
      patternIs: "have at least 4 characters",
      about: "Password that the join server asks for. The same on every node.",
    }),
  },
  placement: {
    strategy: oneOf("global", ["global", "per-node", "local"], {
      about:
        "Which node gets a new job: the next one of a round that all nodes share (`global`) or that each node counts alone (`per-node`), or the one that was asked (`local`).",
    }),
    state_file: path("", {
      defaultIs: "`placement.json` in `data`",
      about: "File in which the position of the round survives a restart.",
    }),
  },
  peers: {
    request_timeout: duration("5s", "50ms", {
      about:
        "How long a node waits for another one that it passed a request on to, unless the caller waits less.",
      smaller: "A busy owner looks unreachable, and callers get a 503 or 504 for jobs that are fine.",
    }),
    health_interval: duration("1s", "50ms", {
      about:
        "How often nodes tell each other that they live, and how busy they are; `node.heartbeat` is not used here.",
      smaller: "More small calls between the nodes while nothing happens.",
    }),
    heartbeat_timeout: duration("1200ms", "20ms", {
      about: "How long a heartbeat waits for its answer.",
      smaller: "On a slow network, or beside a busy processor, nodes look dead that are not.",
    }),
    election_timeout: duration("500ms", "20ms", {
      about:
        "How long a candidate waits for answers, in each of the two rounds of an election; all nodes are asked at the same time.",
      smaller: "Votes come too late on a slow network, and elections are repeated.",
    }),
    forget_after: age("1h", "1s", {
      about:
        "A node that joined and has been dead for so long is removed, and no longer counted for a majority; it may join again. Nodes listed in `nodes` are never removed.",
      smaller: "A machine that is being repaired has to join again.",
    }),
  },
  agents: {
    lease: duration("30s", "100ms", {
      about: "How long leased jobs stay with an agent that does not renew its lease.",
      smaller: "An agent that is cut off for a moment loses jobs that it still runs.",
    }),
    stale_after: duration("15s", "100ms", {
      about: "An agent that has not been seen for so long is shown as stale. It may still lease.",
      smaller: "Agents between two heartbeats look stale.",
    }),
    forget_after: age("1h", "1s", {
      about: "Agents that have not been seen, or were removed, for so long are forgotten.",
      smaller: "Nobody can see any more who worked here a while ago.",
    }),
  },
  controller: {
    moonlight: boolean(true, {
      about:
        "Whether an agent named `{name}-worker` runs beside a controller that stands by. While the controller leads, it is off in any case.",
    }),
    agent_command: list({
      about:
        "What to run as that agent, program and arguments, in place of `baton agent`: one in another language, for example. `{urls}` stands for the known nodes with commas between them, `{name}` for the agent's name.",
    }),
    agent_off: duration("1s", "300ms", {
      about:
        "How long the agent may take to end when the controller is about to lead, which waits for it; then it is killed. Nobody leads in the meantime, so nobody could take its results: longer waits only help handlers that tidy up.",
      smaller: "Handlers are killed before they have tidied up.",
    }),
    restart_first: duration("1s", "10ms", {
      about: "Wait before a child that crashed is started again; twice as long after each further crash.",
      smaller: "A child that cannot start keeps the machine busy with trying.",
    }),
    restart_max: duration("30s", "10ms", {
      about: "Longest such wait. A child that lived for twice as long begins anew with the first one.",
    }),
    degraded_after: integer(3, [1, 1_000], {
      about:
        "After this many crashes of a child in a row the node-controller is `degraded`; it goes on trying.",
    }),
    wedged_after: duration("15s", "500ms", {
      about:
        "A child that lives but does not answer for so long, or an agent that for so long leaves work for it lying, is killed and started again.",
      smaller: "A child that was only busy is restarted, and what it ran runs again.",
    }),
  },
};
