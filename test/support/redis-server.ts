/**
 * A real Redis for tests and benchmarks: the system's `redis-server`, on a free port, in a temporary directory, ended by its pid.
 * Where it is missing and we may (root with apt), it is installed once; elsewhere the error is the one line to type.
 */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@redis/client";
import { freePort } from "./free-port.ts";

export interface RedisServerOptions {
  /** Whether the data is there again after a restart. Without it every restart begins empty. */
  readonly persistent?: boolean;
  readonly password?: string;
  /** More settings, as `["maxmemory", "10mb"]`. */
  readonly settings?: readonly (readonly [name: string, ...values: string[]])[];
}

const START_MS = 10_000;
const STOP_MS = 5_000;
const PORT_TRIES = 5;
const INSTALL = "apt-get update && apt-get install -y redis-server";

export class RedisServer {
  readonly port: number;
  readonly #dir: string;
  readonly #launch: () => Promise<ChildProcess>;
  readonly #password: string | null;
  readonly #atExit: () => void;
  #process: ChildProcess;

  private constructor(
    child: ChildProcess,
    made: { dir: string; port: number; password: string | null; launch: () => Promise<ChildProcess> },
  ) {
    this.#process = child;
    this.#dir = made.dir;
    this.port = made.port;
    this.#password = made.password;
    this.#launch = made.launch;
    this.#atExit = () => {
      this.#process.kill("SIGKILL");
      rmSync(this.#dir, { recursive: true, force: true });
    };
    process.once("exit", this.#atExit);
  }

  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    const program = redisProgram();
    const dir = mkdtempSync(join(tmpdir(), "baton-redis-"));
    const password = options.password ?? null;
    try {
      for (let attempt = 1; ; attempt++) {
        const port = await freePort();
        const launch = (): Promise<ChildProcess> => launched(program, dir, port, options);
        try {
          return new RedisServer(await launch(), { dir, port, password, launch });
        } catch (error) {
          if (attempt === PORT_TRIES || !/Address already in use/.test(String(error))) throw error;
        }
      }
    } catch (error) {
      rmSync(dir, { recursive: true, force: true });
      throw error;
    }
  }

  get pid(): number {
    return this.#process.pid!;
  }

  url(database = 0): string {
    const user = this.#password === null ? "" : `:${encodeURIComponent(this.#password)}@`;
    return `redis://${user}127.0.0.1:${this.port}/${database}`;
  }

  /** One command on a connection of its own, as an operator would give it. */
  async command<Reply = unknown>(...args: readonly string[]): Promise<Reply> {
    const client = createClient({ url: this.url(), socket: { reconnectStrategy: false } });
    client.on("error", () => {});
    await client.connect();
    try {
      return (await client.sendCommand(args)) as Reply;
    } finally {
      client.destroy();
    }
  }

  /** `kill` is kill -9; `shutdown` lets it save what it is to keep. The data of a persistent one stays. */
  async halt(how: "kill" | "shutdown" = "kill"): Promise<void> {
    const child = this.#process;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    this.resume(); // one that stands still would not hear of a shutdown
    child.kill(how === "kill" ? "SIGKILL" : "SIGTERM");
    const hung = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    await exited;
    clearTimeout(hung);
  }

  /** On the same port; with the same data if it is persistent. */
  async relaunch(): Promise<void> {
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
    await this.halt("kill");
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

function launched(
  program: string,
  dir: string,
  port: number,
  { persistent = false, password, settings = [] }: RedisServerOptions,
): Promise<ChildProcess> {
  const all: (readonly string[])[] = [
    ["port", String(port)],
    ["bind", "127.0.0.1"],
    ["dir", dir],
    ["save", ""],
    ["appendonly", persistent ? "yes" : "no"],
    // Every write is on disk before its answer, so that kill -9 loses none.
    ...(persistent ? [["appendfsync", "always"]] : []),
    ...(password === undefined ? [] : [["requirepass", password]]),
    ...settings,
  ];
  const args = all.flatMap(([name, ...values]) => [`--${name}`, ...values]);
  const child = spawn(program, args, { cwd: dir, stdio: ["ignore", "pipe", "pipe"] });
  return new Promise((resolve, reject) => {
    let log = "";
    const fail = (reason: string): void => {
      clearTimeout(late);
      child.kill("SIGKILL");
      reject(new Error(`redis-server did not start: ${reason}\n${log}`));
    };
    const ended = (code: number | null): void => fail(`it ended with ${code}`);
    const read = (chunk: Buffer): void => {
      log += chunk.toString();
      if (!log.includes("Ready to accept connections")) return;
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

/** BATON_TEST_REDIS names another program, such as a Valkey server. */
function redisProgram(): string {
  found ??= process.env["BATON_TEST_REDIS"] ?? (usable("redis-server") ? "redis-server" : installed());
  return found;
}

function usable(program: string): boolean {
  return spawnSync(program, ["--version"], { stdio: "ignore" }).status === 0;
}

function installed(): string {
  const remedy = `no redis-server on this machine; type: ${process.getuid?.() === 0 ? INSTALL : `sudo sh -c '${INSTALL}'`}`;
  const may =
    process.getuid?.() === 0 && spawnSync("apt-get", ["--version"], { stdio: "ignore" }).status === 0;
  if (!may) throw new Error(remedy);
  // The package's own service must not be started: tests start theirs. Two test files may get here together: apt waits.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const install = "apt-get -qq -o DPkg::Lock::Timeout=120 install -y --no-install-recommends redis-server";
  const run = (line: string): boolean => spawnSync("sh", ["-c", line], { stdio: "ignore", env }).status === 0;
  if (!run(install)) run(`apt-get -qq -o DPkg::Lock::Timeout=120 update; ${install}`);
  if (!usable("redis-server")) throw new Error(remedy);
  return "redis-server";
}
