/** The settings of any node. Those of several nodes together are in cluster-settings.ts. */

import { NODE_NAME, THING_NAME } from "../../core/ids.ts";
import { DEFAULT_BUDGETS } from "../../core/jobs/job.ts";
import { durationText } from "../../core/duration.ts";
import { ATTEMPTS_MAX } from "../../core/jobs/job-fields.ts";
import { DEFAULT_RETRY } from "../../core/jobs/retry.ts";
import { NODE_ROLES } from "../../core/node.ts";
import { PROFILE_ALIASES, PROFILE_NAMES } from "./profiles.ts";
import {
  addresses,
  age,
  boolean,
  duration,
  integer,
  list,
  map,
  number,
  oneOf,
  path,
  paths,
  secret,
  size,
  someOf,
  store,
  text,
} from "./setting-definition.ts";

export const TOP_SETTINGS = {
  name: text(null, {
    defaultIs: "the host name",
    flag: "--name",
    pattern: NODE_NAME,
    about: "Name of this node. It is the first part of the ids of jobs submitted here.",
  }),
  data: path(".baton", {
    flag: "--data",
    about: "Directory of the embedded store. One node uses it at a time.",
  }),
  store: store("sqlite", {
    flag: "--store",
    about:
      "Where jobs are kept: `sqlite` (a file in `data`, or the one named as `sqlite:jobs.db`) survives crashes and power loss, `memory` survives nothing, and with `postgres://user:password@host:5432/database` all nodes on that database are one cluster. Without a password in it, `PGPASSWORD` and `~/.pgpass` are looked at.",
  }),
  tasks: paths({ flag: "--tasks", about: "Directories of task modules. A file's name is its task's name." }),
  profile: oneOf("lan", PROFILE_NAMES, {
    aliases: PROFILE_ALIASES,
    flag: "--profile",
    about:
      "A set of defaults: `lan` notices a death within a second or so, `wan` is calm (leases of a minute, heartbeats of 5s), `local` is for nodes on one machine, `quiet-peers` and `slow-peers` are for peers that should say little or that answer slowly, and with `push` the leader pushes jobs to workers. What you set yourself wins over it.",
  }),
  roles: someOf(NODE_ROLES, {
    flag: "--roles",
    about:
      "What this node does: `gateway` answers callers, `function` runs tasks for callers who wait, `worker` runs jobs, `scheduler` may lead.",
  }),
  nodes: map({
    flag: "--nodes",
    about:
      "All nodes of the cluster, by name, with the URL at which the others reach each: the same on every node. This node is among them, and listens at the port of its URL unless `http.port` says otherwise.",
  }),
  join: addresses({
    flag: "--join",
    about:
      "Nodes to join through, as `host:port` (their `manager.addr` if they have one). One that answers is enough; it is tried again until one does.",
  }),
  discover: text("", {
    defaultIs: "empty",
    flag: "--discover",
    about:
      "A DNS name whose addresses are the nodes, looked up again and again: a headless service of Kubernetes, for one. Without a port in it that of `http.port` is meant; with `srv:` before it, SRV records tell addresses and ports.",
  }),
};

export const NODE_SECTIONS = {
  http: {
    host: text("127.0.0.1", {
      flag: "--host",
      about: "Address to listen on. `0.0.0.0` opens the node to the network.",
    }),
    port: integer(8420, [0, 65535], {
      flag: "--port",
      about:
        "Port to listen on. 0 takes any free one; if it was not set and is in use, the next free one is taken.",
    }),
    url: text("", {
      defaultIs: "the address it listens on, or the host name for `0.0.0.0`",
      pattern: /^(?:https?:\/\/[^\s/?#@]+)?$/,
      patternIs: "be an address such as http://host:8420, without a path",
      about: "How others reach this node, as `http://host:port`; shown to them and to callers.",
    }),
    body_limit: size("1MiB", ["1KiB", "1GiB"], {
      about: "Largest request body.",
      smaller: "Bulk submits and large payloads are refused with 413.",
    }),
    base_path: text("/", {
      pattern: /^\/(?:[A-Za-z0-9._~-]+(?:\/[A-Za-z0-9._~-]+)*\/?)?$/,
      patternIs: "begin with a slash, as /baton",
      about:
        "Where a proxy mounts this node, as `/baton`. The dashboard and the whole API answer below it too; nodes among themselves use the addresses without it.",
    }),
    rate_limit: integer(0, [0, 1_000_000], {
      about:
        "Most requests in a second of each token, user or, where nobody is asked, address; more are refused with `429` and `Retry-After`. 0 for no limit.",
    }),
    trusted_proxies: list({
      about:
        "Proxies in front of this node, whose word on the caller's address and on https (`X-Forwarded-For`, `X-Forwarded-Proto`) is believed. That of others is not.",
    }),
  },
  dashboard: {
    enabled: boolean(true, { about: "Whether this node serves the dashboard at `/`." }),
  },
  access: {
    required: oneOf("auto", ["auto", "always"], {
      about:
        "Whether callers must show a token or log in. `auto` asks everybody, unless the node listens on loopback only: then whoever is on the machine may do everything. `always` asks there too.",
    }),
    token: secret({
      ownerOnly: true,
      about:
        "A token with the permission `admin` that is known before the first start, for automation; at least 32 characters, as `baton secret create` makes them. Without it a node that has no credentials makes an admin token by itself.",
    }),
  },
  worker: {
    concurrency: integer(10, [0, 10_000], {
      flag: "--concurrency",
      about: "How many jobs run at the same time on this node; 0 for a node that takes jobs but runs none.",
    }),
    queues: list({ pattern: THING_NAME, about: "Queues that this node works on; empty for all." }),
    lease: duration("10s", "100ms", {
      about:
        "How long a claimed job stays with a worker that says nothing. The embedded store knows by its file lock that its process lives, and ignores this.",
      smaller:
        "A pause of the process (garbage collection, a suspended machine) loses jobs that are still running.",
    }),
    renew: duration("2s", "10ms", {
      about: "How often a worker renews its lease. Also how soon it hears of a cancellation made elsewhere.",
      smaller: "More writes to the store while nothing happens.",
    }),
    prefetch_max: integer(8_000, [1, 10_000], {
      about:
        "Most jobs claimed ahead, of those that run within a tenth of a second. With the embedded store never more than 2000: its claims hold up the event loop.",
      smaller: "Short jobs spend more of their time on claims.",
    }),
  },
  jobs: {
    timeout: duration("1h", "1ms", {
      about: "Longest run of a job, unless it says otherwise.",
      smaller: "Long runs are stopped and counted as failures.",
    }),
    interruptions_max: integer(DEFAULT_BUDGETS.interruptionsMax, [0, 1_000_000], {
      about: "How often drains may interrupt a job before it fails.",
      smaller: "A long job fails after a few deploys.",
    }),
    crashes_max: integer(DEFAULT_BUDGETS.crashesMax, [1, 1_000], {
      about: "A job is quarantined when this many nodes have died while they ran it.",
      smaller: "A job is blamed for crashes that it did not cause.",
    }),
    overdue_grace: duration("30s", "1s", {
      about:
        "How long after its timeout a run may still be reported by the node that runs it, before the leader takes the job away.",
      smaller:
        "A run that its own node was about to stop is taken for one that got stuck, and may run twice.",
    }),
    unstored_max: integer(20_000, [1, 10_000_000], {
      about:
        "Most jobs that a node holds while the store is busy with those before them; more are refused with `429` and `Retry-After`.",
      smaller: "Callers are sent away in a burst that the store would have taken.",
    }),
  },
  functions: {
    timeout: duration("30s", "1ms", {
      about:
        "How long a call of `POST /functions/{task}` waits for the result, unless the caller says otherwise.",
      smaller: "Callers are sent away with a job id while their result is on its way.",
    }),
  },
  retry: {
    attempts: integer(3, [1, ATTEMPTS_MAX], {
      about: "How many attempts a job has, unless it or its task says otherwise.",
    }),
    delay: duration(durationText(DEFAULT_RETRY.delayMs), "0ms", {
      about: "Wait before the second attempt.",
      smaller: "All attempts are spent while the cause of the failure still lasts.",
    }),
    factor: number(DEFAULT_RETRY.factor, [1, 100], { about: "How much longer each further wait is." }),
    max_delay: duration(durationText(DEFAULT_RETRY.maxDelayMs), "0ms", {
      about: "Longest wait between attempts.",
    }),
    jitter: number(DEFAULT_RETRY.jitter, [0, 1], {
      about: "Share by which a wait is spread to both sides.",
      smaller: "Jobs that failed together come back together.",
    }),
  },
  drain: {
    timeout: duration("25s", "0ms", {
      about:
        "How long a stopping node waits for running jobs. Keep it below what the supervisor grants (often 30s).",
      smaller: "More jobs are interrupted at each deploy.",
    }),
    cleanup: duration("5s", "0ms", {
      about: "How long before the end of the drain running handlers are told to stop.",
      smaller: "Handlers cannot tidy up, and their jobs look like crashes.",
    }),
  },
  retention: {
    completed: age("7d", "0ms", {
      about: "How long completed jobs are kept with their results and logs.",
      smaller: "Results are gone before they are fetched, and idempotency keys are forgotten.",
    }),
    failed: age("30d", "0ms", {
      about: "How long failed jobs are kept.",
      smaller: "Dead letters vanish before somebody looks at them.",
    }),
    cancelled: age("7d", "0ms", { about: "How long cancelled jobs are kept." }),
    journal: age("30d", "0ms", {
      about:
        "How long the journal is kept: terms of leadership, nodes, refused writes, handoffs, who did what.",
    }),
  },
  log: {
    level: oneOf("info", ["debug", "info", "warn", "error", "silent"], {
      flag: "--log-level",
      about: "Least level that is logged.",
    }),
    format: oneOf("auto", ["auto", "json", "pretty"], {
      flag: "--log-format",
      about: "`auto` is pretty on a terminal and JSON elsewhere.",
    }),
  },
};
