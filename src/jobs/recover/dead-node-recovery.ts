import type { Membership } from "../../leadership/coordination.ts";
import type { NodeIdentity } from "../../core/node.ts";
import type { Duty, Term } from "../../core/leadership/term.ts";
import { repeat } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import type { LeaseReaper } from "./lease-reaper.ts";

/** Longer, and the jobs of a dead node wait longer. Shorter means more statements while nothing happens. */
const CHECK_MS = 150;
/** While no other node is known. */
const ALONE_MS = 1_000;

/**
 * A leader's duty: takes back the work of dead nodes before their leases have run out. Each step can be repeated: the next leader finds
 * the nodes that were not marked as recovered. `reclaim` takes back what else they had, and is called until it succeeds.
 */
export function deadNodeRecovery(
  { clock, log, events }: Pick<Platform, "clock" | "log" | "events">,
  membership: Membership,
  reaper: Pick<LeaseReaper, "recover">,
  reclaim?: (dead: readonly NodeIdentity[], term: Term) => Promise<void>,
): Duty {
  return (term, signal) =>
    repeat(clock, signal, async () => {
      const dead = await events.fenced("nodes.dead", membership.findDead(term));
      const nextMs = membership.nodes().length > 1 ? CHECK_MS : ALONE_MS;
      if (dead.length === 0) return nextMs;
      const incarnations = dead.map(({ incarnation }) => incarnation);
      const recovered = await reaper.recover({ by: "incarnations", incarnations }, term);
      await reclaim?.(dead, term);
      await events.fenced("nodes.dead", membership.markRecovered(dead, term));
      events.emit("nodes.died", { nodes: dead, leaderEpoch: term.epoch });
      const nodes = dead.map(({ name }) => name);
      log.warn({ nodes, jobs: recovered.length }, "nodes died; what they ran was taken back");
      return nextMs;
    });
}
