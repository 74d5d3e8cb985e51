/** Agents as real processes: `baton agent`, or one in another language. */

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/platform/clock.ts";
import { atEnd, type Scope } from "./node-cleanup.ts";
import { BIN, COMPILED, TASKS, type Exit } from "./process-node.ts";
import { eventually } from "./wait.ts";

export interface AgentOptions {
  readonly name?: string;
  readonly args?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

const PYTHON_AGENT = fileURLToPath(new URL("../../examples/agent-python/agent.py", import.meta.url));

export class AgentProcess {
  readonly child: ChildProcess;
  readonly exited: Promise<Exit>;
  #exit: Exit | null = null;
  #out = "";
  #err = "";

  private constructor(
    command: string,
    args: readonly string[],
    environment: Readonly<Record<string, string>>,
  ) {
    this.child = spawn(command, args, {
      env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: COMPILED, ...environment },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.child.stdout!.setEncoding("utf8").on("data", (text: string) => (this.#out += text));
    this.child.stderr!.setEncoding("utf8").on("data", (text: string) => (this.#err += text));
    this.exited = new Promise((resolve, reject) => {
      this.child.once("error", reject);
      this.child.once("close", (code, signal) => resolve((this.#exit = { code, signal })));
    });
  }

  static spawn(t: Scope, urls: readonly string[], options: AgentOptions = {}): AgentProcess {
    const { name = "agent-1", args = [] } = options;
    const all = [BIN, "agent", "--url", urls.join(","), "--name", name, "--tasks", TASKS, ...args];
    const environment = { BATON_LOG__FORMAT: "json", ...options.environment };
    return AgentProcess.#ended(t, new AgentProcess(process.execPath, all, environment));
  }

  static python(t: Scope, urls: readonly string[], options: AgentOptions = {}): AgentProcess {
    const { name = "snake", args = [] } = options;
    const all = ["-B", PYTHON_AGENT, "--url", urls.join(","), "--name", name, ...args];
    return AgentProcess.#ended(t, new AgentProcess("python3", all, options.environment ?? {}));
  }

  static #ended(t: Scope, agent: AgentProcess): AgentProcess {
    atEnd(t, async () => {
      if (agent.#exit !== null) return;
      agent.child.kill("SIGKILL");
      await agent.exited;
    });
    return agent;
  }

  get output(): string {
    return this.#err + this.#out;
  }

  /** Once it has written this to either stream. */
  async told(pattern: RegExp): Promise<void> {
    await eventually(`${pattern} in: ${this.output}`, () => pattern.test(this.output));
  }

  signal(signal: NodeJS.Signals): void {
    if (this.#exit === null) this.child.kill(signal);
  }

  /** Told to stop; the exit and how long it took. */
  async terminate(): Promise<Exit & { readonly tookMs: number }> {
    const before = systemClock.monotonic();
    this.signal("SIGTERM");
    return { ...(await this.exited), tookMs: systemClock.monotonic() - before };
  }
}
