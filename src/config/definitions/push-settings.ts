/** The settings of Redis, of push dispatch, and of the ownership of jobs. */

import { TIMER_MAX } from "./setting-definition.ts";
import type { Setting } from "./setting-definition.ts";

export const OWNERSHIP_SETTINGS = [
  {
    path: "redis.url",
    kind: "redis",
    default: "",
    flag: "--redis",
    variable: "BATON_REDIS",
    about:
      "A Redis (6.2 or newer) beside `store: postgres://…`, as `redis://user:password@host:6379/0` or `rediss://` for TLS: it elects the leader, knows the nodes and carries the messages, and jobs are pushed to the workers. What it forgets is made up for from the database.",
  },
  {
    path: "redis.prefix",
    kind: "string",
    default: "baton",
    pattern: /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/,
    about: "First part of all keys, in braces. Clusters that share a Redis have different ones.",
  },
  {
    path: "dispatch.mode",
    kind: "enum",
    default: "auto",
    values: ["auto", "pull", "push"],
    flag: "--dispatch",
    about:
      "How jobs get to workers: with `pull` each takes them out of the store, with `push` the leader dispatches them and one node owns the events of each. `auto` pushes where there is a Redis. All nodes of a cluster have the same.",
  },
  {
    path: "dispatch.timeout",
    kind: "duration",
    default: "5s",
    min: "100ms",
    max: TIMER_MAX,
    about:
      "A job that was dispatched and that no worker accepted for so long is dispatched again; a result that its owner did not confirm for so long is written by the worker itself.",
    smaller: "Jobs that wait for a busy worker are taken back and dispatched again and again.",
  },
  {
    path: "handoff.ack_timeout",
    kind: "duration",
    default: "2s",
    min: "50ms",
    max: TIMER_MAX,
    about:
      "How long a node that hands jobs over waits for a sign before it looks into the store and offers them again.",
    smaller: "Jobs are offered again while another node is about to take them.",
  },
  {
    path: "handoff.tries",
    kind: "integer",
    default: 3,
    min: 1,
    max: 100,
    about: "How often jobs are offered before they are left to the leader as `orphan_pending`.",
  },
  {
    path: "handoff.orphan_wait",
    kind: "duration",
    default: "5s",
    min: "0ms",
    max: TIMER_MAX,
    about: "How long a draining node waits for somebody to take what it has left as `orphan_pending`.",
    smaller: "The drain ends as released where it might have ended as drained.",
  },
  {
    path: "handoff.hard_timeout",
    kind: "duration",
    default: "20s",
    min: "0ms",
    max: TIMER_MAX,
    about:
      "Longest time that handing over may take in all; then what is left belongs to nobody, and the leader finds it. Keep it below what the supervisor grants.",
    smaller: "More jobs are without an owner for a moment.",
  },
  {
    path: "handoff.orphan_check",
    kind: "duration",
    default: "1s",
    min: "50ms",
    max: TIMER_MAX,
    about:
      "How often the leader looks for jobs without an owner. Those of a node that was found dead are offered at once.",
    smaller: "More queries while nothing happens.",
  },
  {
    path: "rebalance.enabled",
    kind: "boolean",
    default: true,
    about: "Whether a node that owns far more jobs than another hands some over.",
  },
  {
    path: "rebalance.ratio",
    kind: "number",
    default: 2,
    min: 1.1,
    max: 100,
    about:
      "How many times the jobs of the least loaded node one must own to hand half of the difference over.",
    smaller: "Jobs change hands for small differences.",
  },
  {
    path: "rebalance.interval",
    kind: "duration",
    default: "10s",
    min: "100ms",
    max: TIMER_MAX,
    about: "Shortest time between two such moves of a node.",
    smaller: "Jobs move to and fro while the numbers are still on their way.",
  },
] as const satisfies readonly Setting[];
