/** A command on a real terminal, through on-terminal.py: typed to, looked at, resized, and killed with the test if it still runs. */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import type { Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/platform/clock.ts";
import { atEnd, type Scope } from "./node-cleanup.ts";
import { VtScreen } from "./vt-screen.ts";

const SCRIPT = fileURLToPath(new URL("on-terminal.py", import.meta.url));
export const NO_PTY = spawnSync("python3", ["--version"]).status === 0 ? false : "there is no python3 here";

export interface PtyOptions {
  readonly rows?: number;
  readonly columns?: number;
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

export interface PtyEnd {
  readonly code: number | null;
  /** Whether the terminal echoes and edits lines again. */
  readonly sane: boolean;
}

export class Pty {
  readonly screen: VtScreen;
  readonly ended: Promise<PtyEnd>;
  /** Everything that was written, with its sequences. */
  raw = "";
  readonly #child: ReturnType<typeof spawn>;
  #told = "";

  private constructor(command: readonly string[], options: PtyOptions) {
    const { rows = 24, columns = 80, environment = {}, cwd } = options;
    this.screen = new VtScreen(rows, columns);
    this.#child = spawn("python3", [SCRIPT, String(rows), String(columns), ...command], {
      stdio: ["pipe", "pipe", "inherit", "pipe", "pipe"],
      env: { PATH: process.env["PATH"], TERM: "xterm-256color", ...environment },
      cwd,
    });
    const [, output, , , told] = this.#child.stdio;
    (output as NodeJS.ReadableStream).setEncoding("utf8").on("data", (text: string) => {
      this.raw += text;
      this.screen.write(text);
    });
    (told as NodeJS.ReadableStream).setEncoding("utf8").on("data", (text: string) => (this.#told += text));
    // One that has ended takes nothing more, and that is no failure of the test.
    for (const stream of [this.#child.stdin!, this.#child.stdio[3] as Writable]) stream.on("error", () => {});
    this.ended = new Promise((resolve) =>
      this.#child.once("close", (code) => resolve({ code, sane: this.#told.includes("sane") })),
    );
  }

  static open(t: Scope, command: readonly string[], options: PtyOptions = {}): Pty {
    const pty = new Pty(command, options);
    atEnd(t, () => pty.#end());
    return pty;
  }

  async pid(): Promise<number> {
    await this.until("its pid", () => /^\d+\n/.test(this.#told));
    return Number.parseInt(this.#told, 10);
  }

  type(text: string): void {
    this.#child.stdin!.write(text);
  }

  resize(rows: number, columns: number): void {
    this.screen.resize(rows, columns);
    (this.#child.stdio[3] as Writable).write(`${rows} ${columns}\n`);
  }

  /** The first match on the screen, now or later. */
  async shows(pattern: RegExp, withinMs = 15_000): Promise<RegExpExecArray> {
    let match: RegExpExecArray | null = null;
    await this.until(String(pattern), () => (match = pattern.exec(this.screen.text)) !== null, withinMs);
    return match!;
  }

  async until(what: string, holds: () => boolean, withinMs = 15_000): Promise<void> {
    const last = systemClock.monotonic() + withinMs;
    while (!holds()) {
      assert.ok(
        systemClock.monotonic() < last,
        `waited ${withinMs} ms for ${what}; the screen is\n${this.screen.text}`,
      );
      await systemClock.sleep(20);
    }
  }

  async #end(): Promise<void> {
    const pid = Number.parseInt(this.#told, 10);
    if (this.#child.exitCode === null && pid > 0) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has just ended.
      }
    }
    this.#child.kill("SIGKILL");
    await this.ended;
  }
}
