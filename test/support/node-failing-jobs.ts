import { BatonError } from "../../src/core/errors.ts";
import type { JobStore } from "../../src/store/store.ts";

type Method = keyof JobStore;

/** A job store that refuses some of its calls for a while, as one on a full disk or behind a broken network does. */
export class FailingJobs {
  readonly jobs: JobStore;
  readonly calls = new Map<Method, number>();
  readonly #failing = new Set<Method>();

  constructor(behind: () => JobStore) {
    this.jobs = new Proxy({} as JobStore, {
      get: (_target, name) => {
        const method = name as Method;
        return (...args: unknown[]) => {
          this.calls.set(method, (this.calls.get(method) ?? 0) + 1);
          if (this.#failing.has(method)) {
            return Promise.reject(new BatonError("STORE_UNAVAILABLE", `${method} is refused for now`));
          }
          return (behind()[method] as (...args: unknown[]) => unknown)(...args);
        };
      },
    });
  }

  fail(...methods: readonly Method[]): void {
    for (const method of methods) this.#failing.add(method);
  }

  heal(): void {
    this.#failing.clear();
  }

  count(method: Method): number {
    return this.calls.get(method) ?? 0;
  }
}
