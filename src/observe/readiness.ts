/** Whether a node can do its work now, and if not, why: the rule behind `/readyz`. */

import type { Coordination, Leadership, LockSilence, Membership } from "../leadership/coordination.ts";
import { BatonError, hasCode } from "../core/errors.ts";
import { Cached } from "../platform/cached.ts";
import { within } from "../platform/loop.ts";
import type { Platform } from "../platform/platform.ts";
import type { Store } from "../store/store.ts";

export interface Health {
  readonly draining: boolean;
  /** Why callers are not served yet, as "2 of 3 nodes have gathered"; null once the cluster has formed. */
  readonly forming: string | null;
  /** Why only a restart will help; null while all is well. */
  readonly problem: string | null;
  /** Each check by name, with the reason when it fails. */
  ready(): Promise<{ ready: boolean; checks: Readonly<Record<string, Check>> }>;
}

type Coordinated = Pick<Coordination, "kind"> & { readonly membership: Pick<Membership, "displaced"> };

/** A probe gives up after a second or a few, and then does not get the reason. */
const ANSWER_MS = 1_000;

const NO_LEADER =
  "no leader is known: an election is under way, or the candidates do not reach the server of the lock; `baton doctor` shows which";
const LOCK_SERVERS: Readonly<Record<string, string>> = {
  redis: "Redis",
  etcd: "etcd",
  postgres: "PostgreSQL",
};

type Check = { readonly ok: boolean; readonly reason?: string };

/** `trustMs`: how long a leader trusts what it knows, and a standby too. */
export function readiness(
  { clock, state }: Pick<Platform, "clock" | "state">,
  store: Pick<Store, "terms" | "problem">,
  { kind, membership }: Coordinated,
  leadership: Pick<Leadership, "current" | "silence">,
  trustMs: number,
): Health {
  // One read for all callers: a store that is silent keeps no more than one connection busy with this.
  const stored = new Cached(clock, 0, () => readable(store));

  async function storeAnswers(): Promise<Check> {
    if (store.problem !== null) return { ok: false, reason: store.problem };
    const answered = await within(clock, ANSWER_MS, stored.read());
    return answered ?? { ok: false, reason: `the store is not available: no answer within ${ANSWER_MS} ms` };
  }

  /** A standby goes on naming the leader that it saw last. Once nobody could trust that any more, it is not ready. */
  function lockAnswers(): Check {
    const silence = leadership.silence();
    if (!silence || silence.forMs < trustMs) return { ok: true };
    return { ok: false, reason: silent(LOCK_SERVERS[kind] ?? "the leader lock", silence) };
  }

  return {
    get draining() {
      return state.draining;
    },
    get forming() {
      return state.forming;
    },
    get problem() {
      return store.problem ?? membership.displaced();
    },
    async ready() {
      const outside = state.forming ?? membership.displaced();
      const checks = {
        running: fails(state.draining, "the node is being stopped"),
        cluster: outside === null ? { ok: true } : { ok: false, reason: outside },
        store: await storeAnswers(),
        coordination: lockAnswers(),
        leader: fails(leadership.current() === null, NO_LEADER),
      };
      return { ready: Object.values(checks).every(({ ok }) => ok), checks };
    },
  };
}

async function readable(store: Pick<Store, "terms">): Promise<Check> {
  try {
    await store.terms.read("scheduler");
    return { ok: true };
  } catch (error) {
    return { ok: false, reason: publicReason(error) };
  }
}

/** Every caller may read it, so it names no address, user or database; only the code of the error that caused it. */
function publicReason(error: unknown): string {
  const what = hasCode(error, "STORE_UNAVAILABLE")
    ? "the store is not available"
    : "the store cannot be read";
  return `${what}: ${causeCode(error) ?? "see the log of this node"}`;
}

function silent(backend: string, { forMs, error }: LockSilence): string {
  const code = causeCode(error);
  return `${backend}, which says who leads, has not answered this node for ${Math.round(forMs / 1_000)} s${code ? ` (${code})` : ""}: start it, or mend the way to it; nothing has to be done here, this node tries on`;
}

/** The code of the system or the server, as ECONNREFUSED, from whichever error has one. */
function causeCode(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code, errors } = error as { code?: unknown; errors?: readonly unknown[] };
  if (typeof code === "string" && !(error instanceof BatonError)) return code;
  return causeCode(error.cause) ?? causeCode(errors?.[0]);
}

function fails(failed: boolean, reason: string): Check {
  return failed ? { ok: false, reason } : { ok: true };
}
