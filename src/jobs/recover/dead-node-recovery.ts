import type { Membership } from "../../leadership/coordination.ts";
import type { NodeIdentity } from "../../core/node.ts";
import type { Duty, Term } from "../../core/leadership/term.ts";
import type { LeaseReaper } from "./lease-reaper.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import type { NodeEvents } from "../../platform/node-events.ts";

export interface DeadNodeRecoveryOptions {
  readonly membership: Membership;
  readonly reaper: Pick<LeaseReaper, "recover">;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: NodeEvents;
  /** What else is to be taken from these lives. Called again until it has been done. */
  readonly reclaim?: (lives: readonly NodeIdentity[], term: Term) => Promise<void>;
}

/** A look costs the backend a fraction of a millisecond. Longer, and the jobs of a dead node wait longer. */
const LOOK_MS = 100;

/**
 * A leader's duty: the work of dead nodes is taken back as soon as their death is known, and not only when their leases
 * have run out. Each step can be done again: the next leader finds the nodes that were not marked as recovered.
 */
export function deadNodeRecovery({
  membership,
  reaper,
  clock,
  log,
  events,
  reclaim,
}: DeadNodeRecoveryOptions): Duty {
  return async (term, signal) => {
    while (!signal.aborted) {
      const dead = await events.fenced("nodes.dead", membership.findDead(term));
      if (dead.length > 0) {
        const incarnations = dead.map(({ incarnation }) => incarnation);
        const recovered = await reaper.recover({ by: "lives", incarnations }, term);
        await reclaim?.(dead, term);
        await events.fenced("nodes.dead", membership.markRecovered(dead, term));
        events.emit("nodes.died", { nodes: dead, leaderEpoch: term.epoch });
        log.warn(
          { nodes: dead.map(({ name }) => name), jobs: recovered.length },
          "nodes died; what they ran was taken back",
        );
      }
      await clock.sleep(LOOK_MS, signal);
    }
  };
}
