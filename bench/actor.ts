/**
 * A process of its own for each subject, so that neither shares a heap or compiled code with the other and CPU time
 * can be told apart. The module is imported there; its `open(options)` gives the functions that can be called.
 */

import { fork, type ChildProcess } from "node:child_process";

type Functions = object;
type Arguments<F> = F extends (...args: infer A) => unknown ? A : never;
type Answer<F> = F extends (...args: never[]) => infer R ? Awaited<R> : never;

interface Waiting {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/** A hung subject must not hang the run: nothing measured here takes half as long. */
const CALL_MS_MAX = 120_000;
const STOP_MS_MAX = 10_000;

const alive = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of alive) child.kill("SIGKILL");
});

export class Actor<Api extends Functions> {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, Waiting>();
  #calls = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
    alive.add(child);
    child.on("message", (message: { id: number; value?: unknown; error?: string }) => {
      const waiting = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      if (message.error === undefined) waiting?.resolve(message.value as never);
      else waiting?.reject(new Error(message.error));
    });
    child.once("exit", (code, signal) => {
      alive.delete(child);
      for (const { reject } of this.#waiting.values())
        reject(new Error(`a measured process ended by itself (${code ?? signal})`));
      this.#waiting.clear();
    });
  }

  static async open<Api extends Functions>(
    module: `./${string}.ts`,
    options: Readonly<Record<string, unknown>> = {},
  ): Promise<Actor<Api>> {
    const child = fork(new URL("./actor-main.ts", import.meta.url), {
      execArgv: ["--expose-gc", "--disable-warning=ExperimentalWarning"],
      env: { ...process.env, NODE_ENV: "production" },
      serialization: "advanced",
    });
    const actor = new Actor<Api>(child);
    await actor.#send("open", [new URL(module, import.meta.url).href, options]);
    return actor;
  }

  call<Name extends keyof Api & string>(
    name: Name,
    ...args: Arguments<Api[Name]>
  ): Promise<Answer<Api[Name]>> {
    return this.#send(name, args) as Promise<Answer<Api[Name]>>;
  }

  async kill(): Promise<void> {
    const gone = new Promise<void>((resolve) => this.#child.once("exit", () => resolve()));
    this.#child.kill("SIGKILL");
    await gone;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => this.#child.once("exit", () => resolve()));
    const force = setTimeout(() => this.#child.kill("SIGKILL"), STOP_MS_MAX);
    this.#send("close", []).catch(() => this.#child.kill("SIGKILL"));
    await gone;
    clearTimeout(force);
  }

  #send(name: string, args: readonly unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const id = ++this.#calls;
      const tooLate = (): void => reject(new Error(`${name} took more than ${CALL_MS_MAX / 1_000} s`));
      const timer = setTimeout(tooLate, CALL_MS_MAX);
      const settled = (settle: (value: never) => void) => (value: unknown) => {
        clearTimeout(timer);
        settle(value as never);
      };
      this.#waiting.set(id, { resolve: settled(resolve), reject: settled(reject) });
      this.#child.send({ id, name, args }, (error) => {
        if (error) reject(error);
      });
    });
  }
}
