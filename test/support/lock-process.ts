import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { AdmittedHolderNews, AdmittedHolderOptions } from "./lock-admitted-holder.ts";
import type { HolderNews, HolderOptions } from "./lock-holder.ts";

/** A leader in a process of its own, and what it tells. */
class LeaderProcess<News> implements AsyncDisposable {
  protected readonly child: ChildProcess;
  readonly #news: AsyncIterator<string>;

  constructor(script: string, options: object) {
    const path = fileURLToPath(new URL(script, import.meta.url));
    this.child = spawn(process.execPath, [path, JSON.stringify(options)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#news = createInterface(this.child.stdout!)[Symbol.asyncIterator]();
  }

  async next(): Promise<News> {
    const line = await this.#news.next();
    if (line.done) throw new Error("the process of the leader has ended");
    return JSON.parse(line.value) as News;
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGKILL");
    await exited;
  }
}

/** On PostgreSQL. */
export class HolderProcess extends LeaderProcess<HolderNews> {
  constructor(options: HolderOptions) {
    super("lock-holder.ts", options);
  }

  /** The order to commit, which is read when the process runs. */
  commit(): void {
    this.child.stdin!.write("commit\n");
  }
}

/** On a server beside the store. Tells the epoch that it leads from now on, or null when a term of it ended. */
export class AdmittedHolderProcess extends LeaderProcess<AdmittedHolderNews> {
  constructor(options: AdmittedHolderOptions) {
    super("lock-admitted-holder.ts", options);
  }
}
