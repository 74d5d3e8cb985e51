/**
 * Ends the children of a supervisor that was killed with -9. They notice that by themselves, unless they block their
 * event loop, were stopped, or are written in another language. So a shell of one megabyte waits for the end of a pipe
 * and then kills their process groups.
 *
 *   node-controller ==pipe of group ids==> sh: read ... read ... end of file: kill -KILL the last ones
 *
 * The alternative, a thread in each child, was rejected: it helps neither against SIGSTOP nor with foreign programs.
 * Windows has no process groups; there each child watches its own channel, or its standard input.
 */

import { spawn, type ChildProcess } from "node:child_process";
import type { Platform } from "../platform/platform.ts";
import { Lifecycle } from "../platform/service.ts";

/** It ignores signals: what is sent to everybody must not end the one that cleans up behind them. */
const SCRIPT = `trap '' INT TERM HUP
groups=
while read -r line; do groups=$line; done
for group in $groups; do kill -s KILL -- "-$group"; done`;

/** Somebody kills it, or it cannot be started: shorter, and the machine is busy with trying. */
const AGAIN_MS = 1_000;

export class Sentinel extends Lifecycle {
  readonly #platform: Pick<Platform, "clock" | "log">;
  #groups: readonly number[] = [];
  #shell: ChildProcess | null = null;
  #cancelAgain: () => void = () => {};

  constructor(platform: Pick<Platform, "clock" | "log">) {
    super();
    this.#platform = platform;
  }

  /** From now on these groups are ended with us. */
  guard(groups: readonly number[]): void {
    this.#groups = groups;
    this.#tell();
  }

  protected override onStart(): void {
    if (process.platform !== "win32") this.#spawn();
  }

  protected override async onStop(): Promise<void> {
    this.#cancelAgain();
    this.guard([]);
    const shell = this.#shell;
    this.#shell = null;
    if (!shell || shell.exitCode !== null || shell.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => shell.once("exit", () => resolve()));
    shell.stdin!.end();
    await gone;
  }

  #spawn(): void {
    // In a group of its own, so that it outlives whoever kills ours.
    const shell = spawn("/bin/sh", ["-c", SCRIPT], { stdio: ["pipe", "ignore", "ignore"], detached: true });
    this.#shell = shell;
    shell.stdin.on("error", () => {});
    const lost = (error?: Error): void => {
      if (this.#shell !== shell) return;
      this.#shell = null;
      const message = "the shell that ends the children after a kill -9 is gone; starting another";
      this.#platform.log.warn({ err: error }, message);
      this.#cancelAgain = this.#platform.clock.after(AGAIN_MS, () => this.#spawn());
    };
    shell.once("error", lost);
    shell.once("exit", () => lost());
    this.#tell();
  }

  #tell(): void {
    this.#shell?.stdin?.write(`${this.#groups.join(" ")}\n`);
  }
}
