/** Whether a node can do its work now, and why not: the truth behind `/readyz`. */

import type { Health } from "../api/services.ts";
import type { Leadership, Membership } from "../coordination/coordination.ts";
import { BatonError } from "../core/errors.ts";
import type { Clock } from "../platform/clock.ts";
import type { Store } from "../store/store.ts";

export interface ReadinessOptions {
  readonly draining: () => boolean;
  readonly forming: () => string | null;
  readonly store: Pick<Store, "terms" | "problem">;
  readonly coordination: { readonly membership: Pick<Membership, "displaced"> };
  readonly leadership: Pick<Leadership, "current">;
  readonly clock: Clock;
}

/** Whoever probes gives up after a second or a few, and then does not hear the reason. */
const ANSWER_MS = 1_000;

type Check = { readonly ok: boolean; readonly reason?: string };

export class Readiness implements Health {
  readonly #o: ReadinessOptions;
  /** One for all who ask: a store that is silent keeps no more than one connection busy with this. */
  #looking: Promise<Check> | null = null;

  constructor(options: ReadinessOptions) {
    this.#o = options;
  }

  get draining(): boolean {
    return this.#o.draining();
  }

  get forming(): string | null {
    return this.#o.forming();
  }

  get problem(): string | null {
    return this.#o.store.problem ?? this.#displaced;
  }

  get #displaced(): string | null {
    return this.#o.coordination.membership.displaced?.() ?? null;
  }

  async ready(): Promise<{ ready: boolean; checks: Readonly<Record<string, Check>> }> {
    const outside = this.forming ?? this.#displaced;
    const checks = {
      running: fails(this.draining, "the node is being stopped"),
      cluster: outside === null ? { ok: true } : { ok: false, reason: outside },
      store: await this.#storeAnswers(),
      leader: fails(this.#o.leadership.current() === null, "no leader is known"),
    };
    return { ready: Object.values(checks).every(({ ok }) => ok), checks };
  }

  async #storeAnswers(): Promise<Check> {
    const { problem } = this.#o.store;
    if (problem !== null) return { ok: false, reason: problem };
    const over = new AbortController();
    const late = this.#o.clock.sleep(ANSWER_MS, over.signal).then(() => {
      return { ok: false, reason: `the store is not available: no answer within ${ANSWER_MS} ms` };
    });
    this.#looking ??= this.#look().finally(() => (this.#looking = null));
    try {
      return await Promise.race([this.#looking, late]);
    } finally {
      over.abort();
    }
  }

  async #look(): Promise<Check> {
    try {
      await this.#o.store.terms.read("scheduler");
      return { ok: true };
    } catch (error) {
      return { ok: false, reason: publicReason(error) };
    }
  }
}

/** Everybody may read it, so it names no address, user or database: what is wrong, and the code of the system if there is one. */
export function publicReason(error: unknown): string {
  if (!(error instanceof BatonError)) return "the store cannot be read: the log of this node tells more";
  const what = error.message.split(":", 1)[0]!;
  const code = /\bE[A-Z]{4,}\b/.exec(error.message)?.[0];
  return `${what}: ${code ?? "the log of this node tells more"}`;
}

function fails(failed: boolean, reason: string): Check {
  return failed ? { ok: false, reason } : { ok: true };
}
