/**
 * A real etcd for tests: the system's `etcd`, on free ports, in a temporary directory, ended by its pid; alone, or as one of
 * several members. Where it is missing and we may (root with apt), it is installed once; elsewhere the error is the one line to type.
 */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.ts";

const START_MS = 20_000;
const STOP_MS = 5_000;
const PORT_TRIES = 5;
const INSTALL = "apt-get update && apt-get install -y etcd-server";

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

export class EtcdServer {
  readonly port: number;
  readonly #dir: string;
  readonly #launch: () => Promise<ChildProcess>;
  readonly #atExit: () => void;
  #process: ChildProcess;

  private constructor(
    child: ChildProcess,
    made: { dir: string; port: number; launch: () => Promise<ChildProcess> },
  ) {
    this.#process = child;
    this.#dir = made.dir;
    this.port = made.port;
    this.#launch = made.launch;
    this.#atExit = () => {
      this.#process.kill("SIGKILL");
      rmSync(this.#dir, { recursive: true, force: true });
    };
    process.once("exit", this.#atExit);
  }

  static async start(): Promise<EtcdServer> {
    const [server] = await EtcdServer.startCluster(1);
    return server!;
  }

  /** So many members, which are one etcd. */
  static async startCluster(members: number): Promise<EtcdServer[]> {
    const program = etcdProgram();
    for (let attempt = 1; ; attempt++) {
      const ports = await freePorts(members);
      const started = await Promise.allSettled(ports.map((_, i) => EtcdServer.#member(program, ports, i)));
      const servers = started.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
      if (servers.length === members) return servers;
      await Promise.all(servers.map((server) => server.stop()));
      const { reason } = started.find((each) => each.status === "rejected") as PromiseRejectedResult;
      if (attempt === PORT_TRIES || !/address already in use/.test(String(reason))) throw reason;
    }
  }

  static async #member(program: string, all: readonly Ports[], own: number): Promise<EtcdServer> {
    const dir = mkdtempSync(join(tmpdir(), "baton-etcd-"));
    const launch = (): Promise<ChildProcess> => launched(program, dir, all, own);
    try {
      return new EtcdServer(await launch(), { dir, port: all[own]!.client, launch });
    } catch (error) {
      rmSync(dir, { recursive: true, force: true });
      throw error;
    }
  }

  get pid(): number {
    return this.#process.pid!;
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

  /** kill -9; the data stays. */
  async halt(): Promise<void> {
    const child = this.#process;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGKILL");
    const hung = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    await exited;
    clearTimeout(hung);
  }

  /** On the same ports, with the same data unless it is to begin empty. */
  async relaunch(how: "with its data" | "empty" = "with its data"): Promise<void> {
    if (how === "empty") rmSync(join(this.#dir, "data"), { recursive: true, force: true });
    this.#process = await this.#launch();
  }

  /** It stands still; connections stay open. */
  pause(): void {
    this.#process.kill("SIGSTOP");
  }

  resume(): void {
    this.#process.kill("SIGCONT");
  }

  async stop(): Promise<void> {
    process.removeListener("exit", this.#atExit);
    await this.halt();
    rmSync(this.#dir, { recursive: true, force: true });
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

function launched(program: string, dir: string, all: readonly Ports[], own: number): Promise<ChildProcess> {
  const at = (port: number): string => `http://127.0.0.1:${port}`;
  const { client, peer } = all[own]!;
  const settings: Record<string, string> = {
    name: `member-${own}`,
    "data-dir": join(dir, "data"),
    "listen-client-urls": at(client),
    "advertise-client-urls": at(client),
    "listen-peer-urls": at(peer),
    "initial-advertise-peer-urls": at(peer),
    "initial-cluster": all.map((member, i) => `member-${i}=${at(member.peer)}`).join(","),
    "initial-cluster-token": `baton-${all[0]!.peer}`,
  };
  const args = Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
  const child = spawn(program, args, { cwd: dir, stdio: ["ignore", "pipe", "pipe"] });
  return new Promise((resolve, reject) => {
    let log = "";
    const fail = (reason: string): void => {
      clearTimeout(late);
      child.kill("SIGKILL");
      reject(new Error(`etcd did not start: ${reason}\n${log.slice(-2_000)}`));
    };
    const ended = (code: number | null): void => fail(`it ended with ${code}`);
    const read = (chunk: Buffer): void => {
      log += chunk.toString();
      // What it says once it takes part: version 3.4, and those that came after it.
      if (!/ready to serve client requests/.test(log) || !/serving (insecure )?client/.test(log)) return;
      clearTimeout(late);
      child.off("exit", ended);
      child.stdout.off("data", read).resume();
      child.stderr.off("data", read).resume();
      resolve(child);
    };
    const late = setTimeout(() => fail(`not ready after ${START_MS} ms`), START_MS);
    child.once("error", (error) => fail(error.message));
    child.once("exit", ended);
    child.stdout.on("data", read);
    child.stderr.on("data", read);
  });
}

let found: string | null = null;

/** BATON_TEST_ETCD names another program. */
function etcdProgram(): string {
  found ??= process.env["BATON_TEST_ETCD"] ?? (usable("etcd") ? "etcd" : installed());
  return found;
}

function usable(program: string): boolean {
  return spawnSync(program, ["--version"], { stdio: "ignore" }).status === 0;
}

function installed(): string {
  const remedy = `no etcd on this machine; type: ${process.getuid?.() === 0 ? INSTALL : `sudo sh -c '${INSTALL}'`}`;
  const may =
    process.getuid?.() === 0 && spawnSync("apt-get", ["--version"], { stdio: "ignore" }).status === 0;
  if (!may) throw new Error(remedy);
  // The package's own service must not be started: tests start theirs. Two test files may get here together: apt waits.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const install = "apt-get -qq -o DPkg::Lock::Timeout=120 install -y --no-install-recommends etcd-server";
  const run = (line: string): boolean => spawnSync("sh", ["-c", line], { stdio: "ignore", env }).status === 0;
  if (!run(install)) run(`apt-get -qq -o DPkg::Lock::Timeout=120 update; ${install}`);
  if (!usable("etcd")) throw new Error(remedy);
  return "etcd";
}
