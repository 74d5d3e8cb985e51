/**
 * A server of the tests: a real program in a temporary directory, ended by its pid, and with the process that started it. Each kind of
 * server says how it is started and what it writes once it serves.
 */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.ts";

export interface ServerCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly options?: {
    readonly uid?: number;
    readonly gid?: number;
    readonly env?: NodeJS.ProcessEnv;
    readonly cwd?: string;
  };
  /** What is in its output once it serves. */
  readonly ready: RegExp;
  /** Ends it at once, with its children. */
  readonly exitSignal?: NodeJS.Signals;
}

/** A server that serves, and its directory. */
export interface Started {
  readonly child: ChildProcess;
  readonly directory: string;
  readonly command: ServerCommand;
}

const NOBODY = 65_534;
const START_MS = 20_000;
/** A shutdown that takes longer hangs. */
const STOP_MS = 5_000;
const PORT_TRIES = 5;

/** PostgreSQL and PgBouncer refuse to run as root, so root starts them as `nobody`. */
export const unprivileged: { uid?: number; gid?: number } =
  process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

export async function startServer(commandIn: (directory: string) => ServerCommand): Promise<Started> {
  const directory = mkdtempSync(join(tmpdir(), "baton-server-"));
  try {
    const command = commandIn(directory);
    return { child: await launch(command), directory, command };
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    throw error;
  }
}

/** Another program may take the port first: then another port is tried. */
export async function onFreePort(
  commandFor: (directory: string, port: number) => ServerCommand,
): Promise<{ started: Started; port: number }> {
  return whilePortsAreTaken(async () => {
    const port = await freePort();
    return { started: await startServer((directory) => commandFor(directory, port)), port };
  });
}

export async function whilePortsAreTaken<T>(start: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start();
    } catch (error) {
      if (attempt === PORT_TRIES || !/in use/i.test(String(error))) throw error;
    }
  }
}

export class ServerProcess {
  readonly directory: string;
  readonly #command: ServerCommand;
  readonly #atExit: () => void;
  #child: ChildProcess;

  constructor({ child, directory, command }: Started) {
    this.#child = child;
    this.directory = directory;
    this.#command = command;
    this.#atExit = () => {
      this.resume();
      this.#child.kill(command.exitSignal ?? "SIGKILL");
      rmSync(directory, { recursive: true, force: true });
    };
    process.once("exit", this.#atExit);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Ends it and leaves its data. */
  async end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill(signal);
    this.resume(); // a paused process receives the signal when it goes on
    const hung = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    await exited;
    clearTimeout(hung);
  }

  /** On the same port, with the data that it kept. */
  async relaunch(): Promise<void> {
    this.#child = await launch(this.#command);
  }

  /** All of its processes are stopped; connections stay open. */
  pause(): void {
    // The server first: it would otherwise start new ones meanwhile.
    for (const pid of [this.pid, ...this.#children()]) signalTo(pid, "SIGSTOP");
  }

  resume(): void {
    for (const pid of [...this.#children(), this.pid]) signalTo(pid, "SIGCONT");
  }

  async stop(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    process.removeListener("exit", this.#atExit);
    await this.end(signal);
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** It does not keep this process running. */
  unref(): void {
    this.#child.unref();
    for (const stream of [this.#child.stdout, this.#child.stderr]) (stream as Socket | null)?.unref();
  }

  #children(): number[] {
    try {
      const listed = readFileSync(`/proc/${this.pid}/task/${this.pid}/children`, "utf8");
      return listed.trim().split(" ").filter(Boolean).map(Number);
    } catch {
      return []; // it has ended, or this is not Linux
    }
  }
}

function signalTo(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended meanwhile.
  }
}

function launch({ program, args, options, ready }: ServerCommand): Promise<ChildProcess> {
  const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  const streams = [child.stdout, child.stderr];
  return new Promise((resolve, reject) => {
    let log = "";
    const fail = (reason: string): void => {
      clearTimeout(late);
      child.kill("SIGKILL");
      reject(new Error(`${program} did not start: ${reason}\n${log.slice(-2_000)}`));
    };
    const ended = (code: number | null): void => fail(`it ended with ${code}`);
    const read = (chunk: Buffer): void => {
      log += chunk.toString();
      if (!ready.test(log)) return;
      clearTimeout(late);
      child.off("exit", ended);
      for (const stream of streams) stream.off("data", read).resume();
      resolve(child);
    };
    const late = setTimeout(() => fail(`not ready after ${START_MS} ms`), START_MS);
    child.once("error", (error) => fail(error.message));
    child.once("exit", ended);
    for (const stream of streams) stream.on("data", read);
  });
}

const found = new Map<string, string>();

/**
 * A program of the system, or the one that the environment variable names. Where it is missing and we may (root with apt), its package is
 * installed; elsewhere the error has the line to type.
 */
export function systemProgram(program: string, variable: string, aptPackage: string): string {
  const known = found.get(program);
  if (known !== undefined) return known;
  const path = process.env[variable] ?? program;
  if (path === program && !isUsable(program)) install(program, aptPackage);
  found.set(program, path);
  return path;
}

function isUsable(program: string): boolean {
  return spawnSync(program, ["--version"], { stdio: "ignore" }).status === 0;
}

function install(program: string, aptPackage: string): void {
  const isRoot = process.getuid?.() === 0;
  const line = `apt-get update && apt-get install -y ${aptPackage}`;
  const remedy = `no ${program} on this machine; type: ${isRoot ? line : `sudo sh -c '${line}'`}`;
  if (!isRoot || !isUsable("apt-get")) throw new Error(remedy);
  // The package's own service must not be started: tests start theirs. Two test files may get here together: apt waits.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const apt = "apt-get -qq -o DPkg::Lock::Timeout=120";
  const get = `${apt} install -y --no-install-recommends ${aptPackage}`;
  const run = (text: string): boolean => spawnSync("sh", ["-c", text], { stdio: "ignore", env }).status === 0;
  if (!run(get)) run(`${apt} update; ${get}`);
  if (!isUsable(program)) throw new Error(remedy);
}
