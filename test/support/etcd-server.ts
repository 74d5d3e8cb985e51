/** A real etcd for tests: the system's `etcd`, or the program in BATON_TEST_ETCD; alone, or as one of several members. */

import { rmSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "./free-port.ts";
import {
  ServerProcess,
  startServer,
  systemProgram,
  whilePortsAreTaken,
  type ServerCommand,
  type Started,
} from "./server-process.ts";

interface Ports {
  readonly client: number;
  readonly peer: number;
}

export interface EtcdEntry {
  readonly key: string;
  readonly value: string;
  readonly revision: number;
  readonly lease: string;
}

export class EtcdServer extends ServerProcess {
  readonly port: number;

  private constructor(started: Started, port: number) {
    super(started);
    this.port = port;
  }

  static async start(): Promise<EtcdServer> {
    const [server] = await EtcdServer.startCluster(1);
    return server!;
  }

  static async startCluster(members: number): Promise<EtcdServer[]> {
    const program = systemProgram("etcd", "BATON_TEST_ETCD", "etcd-server");
    return whilePortsAreTaken(async () => {
      const ports = await freePorts(members);
      const starting = ports.map(async ({ client }, own) => {
        const started = await startServer((directory) => commandOf(program, directory, ports, own));
        return new EtcdServer(started, client);
      });
      const started = await Promise.allSettled(starting);
      const servers = started.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
      if (servers.length === members) return servers;
      await Promise.all(servers.map((server) => server.stop()));
      throw (started.find((each) => each.status === "rejected") as PromiseRejectedResult).reason;
    });
  }

  url(user = ""): string {
    return `http://${user === "" ? "" : `${user}@`}127.0.0.1:${this.port}`;
  }

  /** One call of the gateway, as an operator would make it with etcdctl. */
  async call<Reply = unknown>(path: string, body: object, token?: string): Promise<Reply> {
    const headers = { "content-type": "application/json", ...(token ? { authorization: token } : {}) };
    const answer = await fetch(`${this.url()}/v3/${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`etcd: ${path}: ${text}`);
    return JSON.parse(text) as Reply;
  }

  /** Everything whose key begins so. */
  async entries(prefix: string): Promise<EtcdEntry[]> {
    const last = prefix.charCodeAt(prefix.length - 1);
    const rangeEnd = prefix.slice(0, -1) + String.fromCharCode(last + 1);
    const { kvs = [] } = await this.call<{
      kvs?: { key: string; value?: string; mod_revision: string; lease?: string }[];
    }>("kv/range", { key: encoded(prefix), range_end: encoded(rangeEnd) });
    return kvs.map(({ key, value = "", mod_revision, lease = "" }) => ({
      key: decoded(key),
      value: decoded(value),
      revision: Number(mod_revision),
      lease,
    }));
  }

  async value(key: string): Promise<string | null> {
    return (await this.entries(key)).find((entry) => entry.key === key)?.value ?? null;
  }

  async put(key: string, value: string, lease = "0"): Promise<void> {
    await this.call("kv/put", { key: encoded(key), value: encoded(value), lease });
  }

  async remove(key: string): Promise<void> {
    await this.call("kv/deleterange", { key: encoded(key) });
  }

  async removeAll(prefix: string): Promise<void> {
    for (const { key } of await this.entries(prefix)) await this.remove(key);
  }

  async revoke(lease: string): Promise<void> {
    await this.call("lease/revoke", { ID: lease });
  }

  halt(): Promise<void> {
    return this.end("SIGKILL");
  }

  /** On the same ports, with the same data unless it is to begin empty. */
  override async relaunch(how: "with its data" | "empty" = "with its data"): Promise<void> {
    if (how === "empty") rmSync(join(this.directory, "data"), { recursive: true, force: true });
    await super.relaunch();
  }
}

function encoded(text: string): string {
  return Buffer.from(text).toString("base64");
}

function decoded(text: string): string {
  return Buffer.from(text, "base64").toString("utf8");
}

async function freePorts(members: number): Promise<Ports[]> {
  const ports: Ports[] = [];
  for (let i = 0; i < members; i++) ports.push({ client: await freePort(), peer: await freePort() });
  return ports;
}

function commandOf(program: string, directory: string, all: readonly Ports[], own: number): ServerCommand {
  const at = (port: number): string => `http://127.0.0.1:${port}`;
  const { client, peer } = all[own]!;
  const settings: Record<string, string> = {
    name: `member-${own}`,
    "data-dir": join(directory, "data"),
    "listen-client-urls": at(client),
    "advertise-client-urls": at(client),
    "listen-peer-urls": at(peer),
    "initial-advertise-peer-urls": at(peer),
    "initial-cluster": all.map((member, i) => `member-${i}=${at(member.peer)}`).join(","),
    "initial-cluster-token": `baton-${all[0]!.peer}`,
  };
  const args = Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
  // What it says once it takes part: version 3.4, and those that came after it.
  const ready = /^(?=[^]*ready to serve client requests)(?=[^]*serving (?:insecure )?client)/;
  return { program, args, options: { cwd: directory }, ready };
}
