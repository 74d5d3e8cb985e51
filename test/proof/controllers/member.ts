/** A process that the proof keeps running: started again a moment after it was killed, and not to end by itself. */

import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../../src/platform/clock.ts";
import type { SupervisorReport } from "../../../src/supervisor/supervisor-report.ts";
import type { Exit } from "../../support/process.ts";

export interface MemberOptions {
  readonly name: string;
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Where its output goes: a pipe would end with us, and be kept open by whoever it leaves behind. */
  readonly log: string;
  /** Of a node-controller: its data directory and its address. */
  readonly node?: { readonly data: string; readonly url: string };
  readonly restartMs: () => number;
  readonly onBroken: (error: Error) => void;
}

export class Member {
  readonly name: string;
  readonly node: MemberOptions["node"];
  starts = 0;
  readonly #o: MemberOptions;
  #child: ChildProcess | null = null;
  #exited: Promise<Exit> = Promise.resolve({ code: null, signal: null });
  #expected = false;
  #stopping = false;

  constructor(options: MemberOptions) {
    this.#o = options;
    this.name = options.name;
    this.node = options.node;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** As its file has it; null while there is none of this life. */
  report(): SupervisorReport | null {
    const path = this.node && join(this.node.data, "controller.json");
    if (path === undefined || !existsSync(path)) return null;
    const report = JSON.parse(readFileSync(path, "utf8")) as SupervisorReport;
    return report.pid === this.pid ? report : null;
  }

  start(): void {
    const { command, environment, log } = this.#o;
    const [file, ...args] = command;
    const out = openSync(log, "a");
    const child = spawn(file!, args, { env: { ...environment }, stdio: ["ignore", out, out] });
    closeSync(out);
    this.#child = child;
    this.#expected = false;
    this.starts++;
    this.#exited = new Promise((resolve) => {
      child.once("error", (error) => this.#o.onBroken(error));
      child.once("exit", (code, signal) => resolve({ code, signal }));
    });
    void this.#exited.then((exit) => this.#ended(child, exit));
  }

  /** Its death was wished for: it is started again. */
  kill(): void {
    this.#expected = true;
    this.#child?.kill("SIGKILL");
  }

  /** Asked to stop for good. */
  async stop(): Promise<Exit> {
    this.#stopping = true;
    this.#child?.kill("SIGCONT");
    this.#child?.kill("SIGTERM");
    return this.#exited;
  }

  /** At once and for good; nobody waits for what it leaves behind. */
  async end(): Promise<void> {
    this.#stopping = true;
    this.#child?.kill("SIGKILL");
    if (this.#child) await this.#exited;
  }

  async #ended(child: ChildProcess, exit: Exit): Promise<void> {
    if (this.#child === child) this.#child = null;
    if (this.#stopping) return;
    if (!this.#expected || exit.signal !== "SIGKILL")
      return this.#o.onBroken(new Error(`${this.name} ended by itself: ${JSON.stringify(exit)}`));
    await systemClock.sleep(this.#o.restartMs());
    if (!this.#stopping) this.start();
  }
}
