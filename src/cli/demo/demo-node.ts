/**
 * A node of `baton demo`: a real process in its own group, so that Ctrl-C reaches the demo and not the nodes. It ends
 * with the demo even when that is killed with -9: the launcher watches the channel between the two.
 */

import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { Environment } from "../../config/sources/environment.ts";
import type { Clock } from "../../platform/clock.ts";
import { Lifecycle } from "../../platform/service.ts";

export interface DemoNodeOptions {
  readonly name: string;
  /** What to run, after the runtime: the launcher, `start`, its arguments. */
  readonly args: readonly string[];
  readonly cwd: string;
  readonly log: string;
  readonly environment: Environment;
  /** How long it may take to end after SIGTERM. */
  readonly patienceMs: number;
  readonly clock: Clock;
  /** It ended, and nobody here had asked it to: "SIGKILL", or "code 1". */
  readonly onEnd: (how: string) => void;
}

export class DemoNode extends Lifecycle {
  readonly name: string;
  readonly #o: DemoNodeOptions;
  #child: ChildProcess | null = null;
  #ended: Promise<void> = Promise.resolve();
  #unwanted = false;

  constructor(options: DemoNodeOptions) {
    super();
    this.name = options.name;
    this.#o = options;
  }

  /** Null while it does not run. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Ends a process that does not take its time, as a second Ctrl-C asks. */
  hurry(): void {
    this.#signal("SIGTERM");
  }

  protected onStart(): void {
    const { args, cwd, log, environment, onEnd } = this.#o;
    this.#unwanted = false;
    const output = openSync(log, "a", 0o600);
    const child = spawn(process.execPath, [...args], {
      cwd,
      env: { ...ownEnvironment(environment), BATON_LAUNCHER: String(process.pid) },
      stdio: ["ignore", output, output, "ipc"],
      // On Windows that would open a window for each, and there are no groups to leave.
      detached: process.platform !== "win32",
      windowsHide: true,
    });
    closeSync(output);
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      const end = (how: string): void => {
        if (this.#child !== child) return;
        this.#child = null;
        resolve();
        if (!this.#unwanted) onEnd(how);
      };
      child.once("exit", (code, signal) => end(signal ?? `code ${code}`));
      child.once("error", (error) => end(error.message));
    });
  }

  protected async onStop(): Promise<void> {
    this.#unwanted = true;
    if (this.#child === null) return;
    this.#signal("SIGTERM");
    const cancel = this.#o.clock.after(this.#o.patienceMs, () => this.#signal("SIGKILL"));
    await this.#ended;
    cancel();
  }

  #signal(signal: "SIGTERM" | "SIGKILL"): void {
    const pid = this.pid;
    if (pid === null) return;
    try {
      if (process.platform === "win32") this.#child?.kill(signal);
      else process.kill(-pid, signal);
    } catch (error) {
      // It has just ended by itself.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

/** Settings for one node must not reach three. */
function ownEnvironment(environment: Environment): Environment {
  const kept = Object.entries(environment).filter(([name]) => !/^(?:BATON|LANGID)_/.test(name));
  return Object.fromEntries(kept);
}
