/** Whether a node can do its work now, and why not: the truth behind `/readyz`. */

import type { Health } from "../api/services.ts";
import type { Leadership } from "../coordination/coordination.ts";
import type { Store } from "../store/store.ts";

export interface ReadinessOptions {
  readonly draining: () => boolean;
  readonly store: Pick<Store, "terms" | "problem">;
  readonly leadership: Pick<Leadership, "current">;
}

type Check = { readonly ok: boolean; readonly reason?: string };

export class Readiness implements Health {
  readonly #o: ReadinessOptions;

  constructor(options: ReadinessOptions) {
    this.#o = options;
  }

  get draining(): boolean {
    return this.#o.draining();
  }

  get problem(): string | null {
    return this.#o.store.problem;
  }

  async ready(): Promise<{ ready: boolean; checks: Readonly<Record<string, Check>> }> {
    const checks = {
      running: fails(this.draining, "the node is being stopped"),
      store: await this.#storeAnswers(),
      leader: fails(this.#o.leadership.current() === null, "no leader is known"),
    };
    return { ready: Object.values(checks).every(({ ok }) => ok), checks };
  }

  async #storeAnswers(): Promise<Check> {
    if (this.problem !== null) return { ok: false, reason: this.problem };
    try {
      await this.#o.store.terms.read("scheduler");
      return { ok: true };
    } catch (error) {
      return { ok: false, reason: error instanceof Error ? error.message : String(error) };
    }
  }
}

function fails(failed: boolean, reason: string): Check {
  return failed ? { ok: false, reason } : { ok: true };
}
