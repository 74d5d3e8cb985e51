/** Real controllers for the conformance suite, on whatever elects them: what differs between backends is said here and nowhere else. */

import assert from "node:assert/strict";
import { type Leading, QUICK, roleOf, TestCluster } from "./cluster.ts";
import { ControllerCalls } from "./controller-calls.ts";
import { EtcdServer } from "./etcd-server.ts";
import { listedFile } from "./host-cluster.ts";
import { atEnd, type Scope } from "./node-cleanup.ts";
import { PeerCluster, QUICK_PEERS } from "./peer-cluster.ts";
import { allVote } from "./peer-failover.ts";
import type { SharedPostgres } from "./postgres-server.ts";
import type { NodeProcess } from "./process-node.ts";
import { TcpProxy } from "./tcp-proxy.ts";
import { eventually } from "./wait.ts";

export type Backend = "postgres" | "redis" | "etcd" | "peers";

/** Calm: nobody is taken for dead, however busy the machine is. Brisk: who stands still is followed after four seconds. */
export type Pace = "calm" | "brisk";

export interface OpenOptions {
  readonly backend: Backend;
  /** Of the shared store; peers need none. */
  readonly server: SharedPostgres | null;
  readonly pace: Pace;
  readonly agentsLease: string;
  /** Whether each controller reaches the shared store by a wire of its own that can be held up. */
  readonly wired?: boolean;
}

export type Led = Leading;

/** Shorter, and a machine with twenty programs in line for two cores takes a term from its leader where no test did. */
export const BRISK_LEASE_MS = 4_000;
const PACES: Readonly<Record<Pace, Readonly<Record<string, string>>>> = {
  calm: { LEADER__LEASE: "15s", LEADER__MARGIN: "4s", NODE__DEAD_AFTER: "15s" },
  brisk: { LEADER__LEASE: `${BRISK_LEASE_MS}ms`, LEADER__MARGIN: "1s" },
};
/** The sessions of a node that is taken for dead are ended, and with them what is on its way. */
const UNNOTICED = { NODE__DEAD_AFTER: "60s" };
const WAIT_MS = 60_000;
const NAMES = ["ada", "bob"];

/** Of all jobs and what is known of them, as the database has it; leases and agents are renewed by the leader all the time. */
const ROWS = ["job", "live", "done", "log"].map(
  (table) => `SELECT '${table}' AS "table", to_jsonb(t) AS row FROM baton.${table} t`,
);
const EVERYTHING = `SELECT "table", row FROM (${ROWS.join(" UNION ALL ")}) all_rows ORDER BY 1, row::text`;

export class ConformanceCluster {
  /** Whether a successor has the jobs of the leader before it, or only those of its own store. */
  readonly store: "shared" | "own";
  readonly #cluster: TestCluster | PeerCluster;
  readonly #wires = new Map<string, TcpProxy>();

  private constructor(cluster: TestCluster | PeerCluster) {
    this.#cluster = cluster;
    this.store = cluster instanceof TestCluster ? "shared" : "own";
  }

  /** Two controllers on a shared store; three peers, because two of three are a majority when one is gone. */
  static async open(t: Scope, options: OpenOptions): Promise<ConformanceCluster> {
    const { backend, server, pace, agentsLease } = options;
    const settings = {
      ...PACES[pace],
      ROLES: "gateway,scheduler",
      AGENTS__LEASE: agentsLease,
      ...(options.wired && UNNOTICED),
    };
    if (backend === "peers") {
      const all = { ...QUICK_PEERS, ...settings };
      const peers = await PeerCluster.start(t, { file: listedFile, settings: all });
      await allVote(peers, WAIT_MS);
      return new ConformanceCluster(peers);
    }
    assert.ok(server, `${backend} needs a database beside it`);
    const cluster = await TestCluster.open(t, {
      on: server,
      settings: {
        ...QUICK,
        ...settings,
        ...(backend === "etcd" && { ETCD: await etcdFor(t) }),
        DISPATCH__MODE: "pull",
      },
      ...(backend === "redis" && { redis: {} }),
    });
    const opened = new ConformanceCluster(cluster);
    for (const name of options.wired ? NAMES : []) await opened.#wire(t, name, cluster.url);
    await Promise.all(NAMES.map((name) => opened.start(name)));
    await opened.settled();
    return opened;
  }

  get nodes(): ReadonlyMap<string, NodeProcess> {
    return this.#cluster.nodes;
  }

  at(name: string): ControllerCalls {
    return new ControllerCalls(this.#cluster.node(name));
  }

  leader(): Promise<Led> {
    return this.#cluster.leader(WAIT_MS);
  }

  successor(epoch: number): Promise<Led> {
    return this.#cluster.leaderAfter(epoch, WAIT_MS);
  }

  /** One leads, and all who answer agree on who it is and under which epoch. */
  async settled(): Promise<{ leader: Led; standby: string }> {
    return eventually(
      "all to follow one leader",
      async () => {
        const leader = await this.leader();
        const roles = await Promise.all([...this.nodes.values()].map((node) => roleOf(node, 2_000)));
        const agree = roles.every(
          (role) => role?.leader_id === leader.name && role.leader_epoch === leader.epoch,
        );
        const standby = [...this.nodes.keys()].find((name) => name !== leader.name);
        return agree && standby ? { leader, standby } : null;
      },
      WAIT_MS,
    );
  }

  /** With kill -9, or told to stop. */
  async end(name: string, how: "SIGKILL" | "SIGTERM"): Promise<void> {
    const node = this.#cluster.node(name);
    this.#cluster.nodes.delete(name);
    await (how === "SIGKILL" ? node.kill() : node.terminate());
  }

  async start(name: string): Promise<void> {
    const wire = this.#wires.get(name);
    if (wire && this.#cluster instanceof TestCluster)
      await this.#cluster.start(name, { STORE: wire.through(this.#cluster.url) });
    else await this.#cluster.start(name);
  }

  /** Between that controller and the database. */
  wire(name: string): TcpProxy {
    const wire = this.#wires.get(name);
    assert.ok(wire, `${name} has no wire of its own`);
    return wire;
  }

  /** What there is of jobs: in the database, past all nodes, or in the stores of the nodes as each tells it. */
  async stored(): Promise<unknown> {
    if (this.#cluster instanceof TestCluster) return this.#cluster.sql(EVERYTHING);
    return Promise.all(
      [...this.nodes.keys()].map(async (name) => {
        const { jobs } = (await this.at(name).get("/v1/jobs?limit=1000")).body;
        const each = jobs.map(({ job_id }: { job_id: string }) => this.at(name).job(job_id));
        return { name, jobs: await Promise.all(each) };
      }),
    );
  }

  async #wire(t: Scope, name: string, url: string): Promise<void> {
    const wire = await TcpProxy.start(url);
    atEnd(t, () => wire.stop());
    this.#wires.set(name, wire);
  }
}

async function etcdFor(t: Scope): Promise<string> {
  const etcd = await EtcdServer.start();
  atEnd(t, () => etcd.stop());
  return etcd.url();
}
