/** A program of ours as a process of its own: what it writes, how it ends, and killed at the latest when the test lets go of it. */

import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/platform/clock.ts";
import { atEnd, type Scope } from "./node-cleanup.ts";
import { eventually } from "./wait.ts";

export const BIN = fileURLToPath(new URL("../../bin/baton.mjs", import.meta.url));
/** Nodes are started by the hundred, and compiling is a third of what a start takes. Filled by those that end in peace. */
export const COMPILED = fileURLToPath(new URL("../../node_modules/.cache/baton-compiled", import.meta.url));
/** A start takes one second, and on a machine with thirty programs in line for two cores more than twenty. */
const TOLD_MS_MAX = 60_000;

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Ended extends Exit {
  readonly out: string;
  readonly err: string;
}

export interface Command {
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly input?: string;
  /** Its children live on and keep its streams open: it has ended when it is gone itself. */
  readonly leavesChildren?: boolean;
}

export class TestProcess implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly exited: Promise<Exit>;
  #exit: Exit | null = null;
  #out = "";
  #err = "";

  constructor(program: string, args: readonly string[], command: Command = {}) {
    const { environment, cwd, input, leavesChildren = false } = command;
    this.child = spawn(program, args, {
      env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: COMPILED, ...environment },
      cwd,
      stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    });
    this.child.stdin?.on("error", () => {}).end(input);
    this.child.stdout!.setEncoding("utf8").on("data", (text: string) => (this.#out += text));
    this.child.stderr!.setEncoding("utf8").on("data", (text: string) => (this.#err += text));
    this.exited = new Promise((resolve, reject) => {
      this.child.once("error", reject);
      this.child.once(leavesChildren ? "exit" : "close", (code, signal) =>
        resolve((this.#exit = { code, signal })),
      );
    });
  }

  /** Of a program to the end of which nobody waits otherwise: with what it wrote. */
  get ended(): Promise<Ended> {
    return this.exited.then((exit) => ({ ...exit, out: this.#out, err: this.#err }));
  }

  get pid(): number {
    return this.child.pid!;
  }

  get stdout(): string {
    return this.#out;
  }

  get stderr(): string {
    return this.#err;
  }

  get output(): string {
    return this.#err + this.#out;
  }

  /** The first match in what it wrote to either stream, now or later. */
  told(pattern: RegExp): Promise<RegExpExecArray> {
    return eventually(
      String(pattern),
      () => {
        const match = pattern.exec(this.#err) ?? pattern.exec(this.#out);
        assert.ok(match ?? !this.#exit, `${JSON.stringify(this.#exit)} without ${pattern}: ${this.output}`);
        return match;
      },
      TOLD_MS_MAX,
    );
  }

  /** Signals go to the process itself, never by name. */
  signal(signal: NodeJS.Signals): void {
    if (this.#exit === null) process.kill(this.pid, signal);
  }

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.exited;
  }

  /** Told to stop; the exit and how long it took. */
  async terminate(): Promise<Exit & { readonly tookMs: number }> {
    const before = systemClock.monotonic();
    this.signal("SIGTERM");
    return { ...(await this.exited), tookMs: systemClock.monotonic() - before };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#exit !== null || this.child.pid === undefined) return;
    this.child.kill("SIGCONT"); // a stopped process would not be gone before it goes on
    this.child.kill("SIGKILL");
    await this.exited;
  }

  protected endsWith(t: Scope): this {
    atEnd(t, () => this[Symbol.asyncDispose]());
    return this;
  }
}

/** As in the environment of a node, without the prefix: `{ WORKER__CONCURRENCY: "2" }`. */
export function environmentOf(settings: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(settings).map(([key, value]) => [`BATON_${key}`, value]));
}

/** A script, or the command line, with the Node of this test. */
export function script(file: string, args: readonly string[], command: Command = {}): TestProcess {
  return new TestProcess(process.execPath, [file, ...args], command);
}

/** The command line until it ends, with an environment of its own. */
export function batonCommand(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  input = "",
): Promise<Ended> {
  return script(BIN, args, { environment, input }).ended;
}

/** `baton …` against a node. */
export function baton(node: { readonly url: string }, ...args: string[]): Promise<Ended> {
  return batonCommand([...args, "--url", node.url]);
}
