import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { HolderNews, HolderOptions } from "./lock-holder.ts";

/** A leader in a process of its own, and what it tells. */
export class HolderProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #news: AsyncIterator<string>;

  constructor(options: HolderOptions) {
    const path = fileURLToPath(new URL("lock-holder.ts", import.meta.url));
    this.#child = spawn(process.execPath, [path, JSON.stringify(options)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#news = createInterface(this.#child.stdout!)[Symbol.asyncIterator]();
  }

  async next(): Promise<HolderNews> {
    const line = await this.#news.next();
    if (line.done) throw new Error("the process of the leader has ended");
    return JSON.parse(line.value) as HolderNews;
  }

  /** The epoch that it leads from now on, or null when a term of it ended. */
  async leads(): Promise<number | null> {
    const news = await this.next();
    assert.ok("leads" in news, JSON.stringify(news));
    return news.leads;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** The order to commit, which is read when the process runs. */
  commit(): void {
    this.#child.stdin!.write("commit\n");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill("SIGKILL");
    await exited;
  }
}
