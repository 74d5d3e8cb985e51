import { BatonError } from "../../src/core/errors.ts";
import type { JobStore } from "../../src/store/store.ts";

type Method = keyof JobStore;

/** A job store that refuses or delays some of its calls for a while, as one on a full disk or behind a broken network does. */
export class FailingJobs {
  readonly jobs: JobStore;
  readonly calls = new Map<Method, number>();
  readonly #failing = new Set<Method>();
  readonly #losing = new Set<Method>();
  readonly #held = new Map<Method, Promise<void>>();

  constructor(behind: () => JobStore) {
    this.jobs = new Proxy({} as JobStore, {
      get: (_target, name) => {
        if (name === "slots") return behind().slots;
        const method = name as Method;
        return (...args: unknown[]) => {
          this.calls.set(method, (this.calls.get(method) ?? 0) + 1);
          if (this.#failing.has(method)) {
            return Promise.reject(new BatonError("STORE_UNAVAILABLE", `${method} is refused for now`));
          }
          const answer = (behind()[method] as (...args: unknown[]) => Promise<unknown>)(...args);
          if (this.#losing.has(method)) {
            const lost = new BatonError("STORE_UNAVAILABLE", `the answer to ${method} is lost`);
            return answer.then(() => Promise.reject(lost));
          }
          const held = this.#held.get(method);
          return held ? held.then(() => answer) : answer;
        };
      },
    });
  }

  fail(...methods: readonly Method[]): void {
    for (const method of methods) this.#failing.add(method);
  }

  /** Does what it is asked, and nobody hears of it. */
  loseAnswers(...methods: readonly Method[]): void {
    for (const method of methods) this.#losing.add(method);
  }

  /** Does what it is asked at once, and answers only when it is let go. */
  holdAnswers(method: Method): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held.set(method, promise);
    return () => {
      this.#held.delete(method);
      resolve();
    };
  }

  heal(): void {
    this.#failing.clear();
    this.#losing.clear();
  }

  count(method: Method): number {
    return this.calls.get(method) ?? 0;
  }
}
