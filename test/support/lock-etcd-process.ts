import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { EtcdHolderNews, EtcdHolderOptions } from "./lock-etcd-holder.ts";

/** A leader in a process of its own (lock-etcd-holder.ts), and what it tells. */
export class EtcdHolderProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #news: AsyncIterator<string>;

  constructor(options: EtcdHolderOptions) {
    const script = fileURLToPath(new URL("lock-etcd-holder.ts", import.meta.url));
    this.#child = spawn(process.execPath, [script, JSON.stringify(options)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#news = createInterface(this.#child.stdout!)[Symbol.asyncIterator]();
  }

  /** The epoch that it leads from now on, or null when a term of it ended. */
  async next(): Promise<number | null> {
    const line = await this.#news.next();
    if (line.done) throw new Error("the process of the leader has ended");
    return (JSON.parse(line.value) as EtcdHolderNews).leads;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill("SIGKILL");
    await exited;
  }
}
