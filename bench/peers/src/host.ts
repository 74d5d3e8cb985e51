// The parent's side of child.ts.
import { fork, type ChildProcess } from "node:child_process";
import type { Listed } from "./contenders/index.ts";
import { databaseName } from "./servers.ts";
import type { Context } from "./types.ts";
import { sleep } from "./util.ts";

const TIMEOUT_MS = 120_000;

const alive = new Set<ChildProcess>();
process.once("exit", () => alive.forEach((c) => c.pid && c.kill("SIGKILL")));

export class Host {
  #child: ChildProcess;
  #next = 1;
  #waiting = new Map<number, { resolve: (v: any) => void; reject: (e: Error) => void }>();
  #listeners: ((m: any) => void)[] = [];
  progress = 0;
  pid: number;

  constructor(file: URL, env: Record<string, string> = {}) {
    this.#child = fork(file, {
      execArgv: ["--disable-warning=ExperimentalWarning", "--disable-warning=DeprecationWarning"],
      env: { ...process.env, NODE_ENV: "production", ...env },
      serialization: "advanced",
    });
    this.pid = this.#child.pid!;
    alive.add(this.#child);
    this.#child.on("message", (m: any) => {
      if (m.id) {
        const w = this.#waiting.get(m.id);
        this.#waiting.delete(m.id);
        if (m.err) w?.reject(new Error(m.err));
        else w?.resolve(m.ok);
        return;
      }
      if (m.event === "progress") this.progress = m.count;
      if (m.event === "problem") console.error(`    [${this.pid}] ${m.text}`);
      for (const l of this.#listeners) l(m);
    });
    this.#child.once("exit", (code, signal) => {
      alive.delete(this.#child);
      for (const w of this.#waiting.values()) w.reject(new Error(`process ended (${code ?? signal})`));
      this.#waiting.clear();
    });
  }

  static async open(entry: Listed, context: Context): Promise<Host> {
    const host = new Host(new URL("./child.ts", import.meta.url));
    const pgUrl = new URL(context.pgUrl);
    if (entry.store === "postgres") pgUrl.pathname = `/${databaseName(entry.name)}`;
    await host.call("open", {
      module: entry.module,
      name: entry.exported,
      context: { ...context, pgUrl: pgUrl.href },
    });
    return host;
  }

  call<T = any>(cmd: string, args: unknown = {}): Promise<T> {
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      const timer = setTimeout(
        () => this.#waiting.get(id)?.reject(new Error(`${cmd} took more than ${TIMEOUT_MS / 1000} s`)),
        TIMEOUT_MS,
      );
      const settled =
        <A>(f: (a: A) => void) =>
        (a: A): void => {
          clearTimeout(timer);
          f(a);
        };
      this.#waiting.set(id, { resolve: settled(resolve), reject: settled(reject) });
      this.#child.send({ id, cmd, args }, (e) => e && reject(e));
    });
  }

  on(listener: (m: any) => void): void {
    this.#listeners.push(listener);
  }

  /** The next event of that name. */
  event<T = any>(name: string, timeoutMs: number): Promise<T | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => done(undefined), timeoutMs);
      const listener = (m: any): void => void (m.event === name && done(m));
      const done = (m: T | undefined): void => {
        clearTimeout(timer);
        this.#listeners = this.#listeners.filter((l) => l !== listener);
        resolve(m);
      };
      this.#listeners.push(listener);
    });
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => this.#child.once("exit", () => resolve()));
    await Promise.race([this.call("stop").catch(() => {}), sleep(6000)]);
    this.#child.kill("SIGKILL");
    await gone;
  }
}
