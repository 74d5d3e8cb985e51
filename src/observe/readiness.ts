/** Whether a node can do its work now, and if not, why: the rule behind `/readyz`. */

import type { Coordination, Leadership, LockSilence, Membership } from "../leadership/coordination.ts";
import { BatonError } from "../core/errors.ts";
import type { Clock } from "../platform/clock.ts";
import type { Store } from "../store/store.ts";

export type Health = Pick<Readiness, "draining" | "forming" | "problem" | "ready">;

export interface ReadinessOptions {
  readonly draining: () => boolean;
  readonly forming: () => string | null;
  readonly store: Pick<Store, "terms" | "problem">;
  readonly coordination: Pick<Coordination, "kind"> & { readonly membership: Pick<Membership, "displaced"> };
  readonly leadership: Pick<Leadership, "current" | "silence">;
  /** How long a leader trusts what it knows, and a standby too. */
  readonly trustMs: number;
  readonly clock: Clock;
}

/** Whoever probes gives up after a second or a few, and then does not hear the reason. */
const ANSWER_MS = 1_000;

const NO_LEADER =
  "no leader is known: an election is under way, or those who could lead do not reach whoever keeps the lock; `baton doctor` tells which";
/** Who keeps the lock, by the kind of coordination. */
const KEEPERS: Readonly<Record<string, string>> = { redis: "Redis", etcd: "etcd", postgres: "PostgreSQL" };

type Check = { readonly ok: boolean; readonly reason?: string };

export class Readiness {
  readonly #o: ReadinessOptions;
  /** One for all who ask: a store that is silent keeps no more than one connection busy with this. */
  #looking: Promise<Check> | null = null;

  constructor(options: ReadinessOptions) {
    this.#o = options;
  }

  get draining(): boolean {
    return this.#o.draining();
  }

  /** Why callers are not served yet, as "2 of 3 nodes have gathered"; null once the cluster has formed. */
  get forming(): string | null {
    return this.#o.forming();
  }

  /** Why only a restart will help; null while all is well. */
  get problem(): string | null {
    return this.#o.store.problem ?? this.#displaced;
  }

  get #displaced(): string | null {
    return this.#o.coordination.membership.displaced();
  }

  /** Whether this node can do its work now: each check by name, with the reason when it fails. */
  async ready(): Promise<{ ready: boolean; checks: Readonly<Record<string, Check>> }> {
    const outside = this.forming ?? this.#displaced;
    const checks = {
      running: fails(this.draining, "the node is being stopped"),
      cluster: outside === null ? { ok: true } : { ok: false, reason: outside },
      store: await this.#storeAnswers(),
      coordination: this.#lockAnswers(),
      leader: fails(this.#o.leadership.current() === null, NO_LEADER),
    };
    return { ready: Object.values(checks).every(({ ok }) => ok), checks };
  }

  /** A standby goes on naming the leader that it saw last. Once nobody could trust that any more, it is not ready. */
  #lockAnswers(): Check {
    const { coordination, leadership, trustMs } = this.#o;
    const silence = leadership.silence();
    if (!silence || silence.forMs < trustMs) return { ok: true };
    return { ok: false, reason: silent(KEEPERS[coordination.kind] ?? "the leader lock", silence) };
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
  return `${what}: ${codeIn(error) ?? "the log of this node tells more"}`;
}

/** Everybody may read this too. */
function silent(backend: string, { forMs, error }: LockSilence): string {
  const code = codeIn(error);
  return `${backend}, which says who leads, has not answered this node for ${Math.round(forMs / 1_000)} s${code ? ` (${code})` : ""}: start it, or mend the way to it; nothing has to be done here, this node tries on`;
}

function codeIn(error: unknown): string | null {
  return (error instanceof Error && /\bE[A-Z]{4,}\b/.exec(error.message)?.[0]) || null;
}

function fails(failed: boolean, reason: string): Check {
  return failed ? { ok: false, reason } : { ok: true };
}
