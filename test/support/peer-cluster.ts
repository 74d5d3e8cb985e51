/** Real nodes that are a cluster by themselves: each with a file that says who it is, on ports that stay theirs over restarts. */

import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { JobRequestBody, JobSummaryBody } from "../../src/client/baton-client.ts";
import { freePorts } from "./free-port.ts";
import { NodeGroup, roleOf } from "./cluster.ts";
import type { Scope } from "./node-cleanup.ts";
import { dataDirectory, NodeProcess, type ProcessOptions } from "./process-node.ts";
import { eventually } from "./wait.ts";

/** Where everybody is, for whoever writes the file of one node. */
export interface PeerPlan {
  readonly name: string;
  readonly names: readonly string[];
  readonly url: (name: string) => string;
  /** Of its join server, as `host:port`. */
  readonly manager: (name: string) => string;
}

export interface NodeFile {
  readonly file: string;
  readonly text: string;
}

export type WriteNodeFile = (plan: PeerPlan) => NodeFile;

export interface PeerClusterOptions {
  /** Node-a, node-b and node-c unless told otherwise. */
  readonly names?: readonly string[];
  /** A `cluster_config.json` with its rotation on unless told otherwise. */
  readonly file?: WriteNodeFile;
  /** Of every node, as in the environment, without the prefix. */
  readonly settings?: Readonly<Record<string, string>>;
  /** As the others see it: of a proxy before it, for one. */
  readonly url?: (name: string, seenBy: string, port: number) => string;
  /** What to run as that node: on a host of its own, for one. */
  readonly command?: (name: string) => ProcessOptions["command"];
}

export interface Launch extends Pick<ProcessOptions, "args" | "environment" | "cwd" | "command"> {
  /** Over those of the cluster. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Everything that is waited for when a node falls silent takes 1.5 s. Shorter, and a busy machine looks like a dead one. */
export const QUICK_PEERS: Readonly<Record<string, string>> = {
  LEADER__LEASE: "1500ms",
  LEADER__RENEW: "300ms",
  LEADER__MARGIN: "400ms",
  LEADER__RETRY: "100ms",
  PEERS__HEALTH_INTERVAL: "250ms",
  PEERS__ELECTION_TIMEOUT: "200ms",
  NODE__DEAD_AFTER: "1500ms",
};

export interface NodeMapFields {
  readonly nodes?: Readonly<Record<string, string>>;
  readonly health_check_interval_seconds?: number;
  readonly internal_request_timeout_seconds?: number;
  readonly enable_round_robin?: boolean;
  readonly rr_state_file?: string;
  readonly rr_strategy?: "global" | "per-node";
}

/** A `cluster_config.json` with a map of nodes, on our ports. */
export function nodeMapFile(fields: NodeMapFields | ((plan: PeerPlan) => NodeMapFields) = {}): WriteNodeFile {
  return (plan) => {
    const own = typeof fields === "function" ? fields(plan) : fields;
    const content = {
      self_name: plan.name,
      nodes: Object.fromEntries(plan.names.map((name) => [name, plan.url(name)])),
      health_check_interval_seconds: 5,
      internal_request_timeout_seconds: 5,
      enable_round_robin: true,
      rr_strategy: "global",
      ...own,
    };
    return { file: "cluster_config.json", text: JSON.stringify(content, null, 2) };
  };
}

/** A `cluster:` section with a join server: the first node begins, the others join through it. */
export function clusterSectionFile(
  credentials = { user: "cluster_user", pass: "cluster_pass" },
): WriteNodeFile {
  return ({ name, names, url, manager }) => {
    const first = names[0]!;
    const lines = [
      "cluster:",
      `  node: "${name}"`,
      `  bind: "${new URL(url(name)).host}"`,
      `  user: "${credentials.user}"`,
      `  pass: "${credentials.pass}"`,
      "  manager:",
      '    type: "join_server"',
      `    addr: "${manager(name)}"`,
      ...(name === first ? [] : [`    join: "${manager(first)}"`]),
    ];
    return { file: "cluster.yaml", text: `${lines.join("\n")}\n` };
  };
}

export class PeerCluster extends NodeGroup {
  readonly names: readonly string[];
  readonly directory: string;
  readonly #t: Scope;
  readonly #ports: ReadonlyMap<string, { readonly api: number; readonly manager: number }>;
  readonly #options: PeerClusterOptions;

  private constructor(
    t: Scope,
    directory: string,
    names: readonly string[],
    ports: readonly number[],
    options: PeerClusterOptions,
  ) {
    super();
    this.#t = t;
    this.directory = directory;
    this.names = names;
    this.#options = options;
    this.#ports = new Map(
      names.map((name, index) => [name, { api: ports[2 * index]!, manager: ports[2 * index + 1]! }]),
    );
  }

  /** Names and ports; nothing runs yet. */
  static async open(t: Scope, options: PeerClusterOptions = {}): Promise<PeerCluster> {
    const names = options.names ?? ["node-a", "node-b", "node-c"];
    const directory = await dataDirectory(t);
    return new PeerCluster(t, directory, names, await freePorts(2 * names.length), options);
  }

  /** A cluster in which everybody sees everybody and one leads. */
  static async start(t: Scope, options: PeerClusterOptions = {}): Promise<PeerCluster> {
    const cluster = await PeerCluster.open(t, options);
    await cluster.startAll();
    return cluster;
  }

  async startAll(...names: string[]): Promise<void> {
    await Promise.all((names.length > 0 ? names : this.names).map((name) => this.start(name)));
    await this.gathered();
  }

  /** One that answers, new or again on what it left behind. */
  async start(name: string, launch: Launch = {}): Promise<NodeProcess> {
    const node = await this.spawn(name, launch);
    await node.listening();
    this.nodes.set(name, node);
    return node;
  }

  /** A process that may or may not become a node. */
  async spawn(name: string, launch: Launch = {}): Promise<NodeProcess> {
    // Who brings arguments has written the file as well.
    const args = launch.args ?? ["--config", await this.writeFile(name)];
    return NodeProcess.spawn(this.#t, {
      data: this.data(name),
      command: this.#options.command?.(name),
      ...launch,
      args,
      // What the nodes of one machine share; the user's own is left alone.
      environment: { XDG_STATE_HOME: this.directory, LOCALAPPDATA: this.directory, ...launch.environment },
      settings: {
        LOG__LEVEL: "info",
        RETRY__DELAY: "20ms",
        JOBS__CRASHES_MAX: "1000", // nodes are killed from outside, and no job is to blame
        ...this.#options.settings,
        ...launch.settings,
      },
    });
  }

  /** Writes what the node is started with, and says where. */
  async writeFile(name: string, write = this.#options.file ?? nodeMapFile()): Promise<string> {
    const { file, text } = write(this.plan(name));
    const home = join(this.directory, `${name}.files`);
    await mkdir(home, { recursive: true });
    await writeFile(join(home, file), text, { mode: 0o600 });
    return join(home, file);
  }

  plan(name: string): PeerPlan {
    const { url = (_name, _seenBy, port) => `http://127.0.0.1:${port}` } = this.#options;
    return {
      name,
      names: this.names,
      url: (other) => url(other, name, this.#port(other).api),
      manager: (other) => `localhost:${this.#port(other).manager}`,
    };
  }

  data(name: string): string {
    return join(this.directory, name);
  }

  url(name: string): string {
    return `http://127.0.0.1:${this.#port(name).api}`;
  }

  async terminate(name: string): Promise<void> {
    const node = this.node(name);
    this.nodes.delete(name);
    const { code } = await node.terminate();
    assert.equal(code, 0, node.stderr);
  }

  async restart(name: string, launch: Launch = {}): Promise<NodeProcess> {
    const node = await this.start(name, launch);
    await this.gathered();
    return node;
  }

  /** Everybody who runs follows the same leader and sees all the others up. */
  async gathered(withinMs?: number): Promise<void> {
    const { epoch } = await this.leader(withinMs);
    for (const [name, node] of this.nodes) {
      await eventually(
        `${name} to see ${[...this.nodes.keys()].join(", ")}`,
        async () => {
          const role = await roleOf(node);
          if (role === null || (role.leader_epoch ?? 0) < epoch) return null;
          const seen = await statuses(node);
          return [...this.nodes.keys()].every((each) => seen[each] === "active");
        },
        withinMs,
      );
    }
  }

  async sees(viewer: string, name: string, status: string): Promise<void> {
    await eventually(
      `${viewer} to see ${name} ${status}`,
      async () => (await statuses(this.node(viewer)))[name] === status,
    );
  }

  /** Submits a job to that node, which keeps it: the caller asks for no forwarding. */
  async jobAt(name: string, job: JobRequestBody): Promise<string> {
    const { status, body } = await this.node(name).call("/jobs", {
      method: "POST",
      headers: { "content-type": "application/json", "x-baton-no-forward": "1" },
      body: JSON.stringify(job),
    });
    assert.equal(status, 200, JSON.stringify(body));
    const { job_id } = body as { job_id: string };
    assert.equal(birthplace(job_id), name);
    return job_id;
  }

  /** Of the stores of all nodes that run, each asked for its own. */
  async everyJob(filter: { task?: string } = {}): Promise<JobSummaryBody[]> {
    const all = await Promise.all([...this.nodes.values()].map((node) => node.allJobs(filter)));
    return all.flat();
  }

  #port(name: string): { readonly api: number; readonly manager: number } {
    const ports = this.#ports.get(name);
    assert.ok(ports, `${name} is not among ${this.names.join(", ")}`);
    return ports;
  }
}

/** The name in front of the uuid. */
export function birthplace(jobId: string): string {
  return jobId.slice(0, -37);
}

/** By name, as that node sees them. */
export async function statuses(node: NodeProcess): Promise<Record<string, string>> {
  const { nodes } = await node.client.cluster.nodes();
  return Object.fromEntries(
    nodes.map(({ name, status, alive }) => [name, alive ? status : `silent ${status}`]),
  );
}
