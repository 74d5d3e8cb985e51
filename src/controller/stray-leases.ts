/**
 * Stray leases: leases in the store that no agent holds, of agents that were switched off while there was no leader,
 * and of answers that never arrived. They are ended at once and counted as interruptions; otherwise they would expire
 * and count as crashes.
 */

import { leasesOf } from "../core/agent.ts";
import type { Term } from "../core/leadership/term.ts";
import { Batcher, byTerm, type UnderTerm } from "../platform/batcher.ts";
import type { Platform } from "../platform/platform.ts";
import type { LeaseReaper } from "../jobs/recover/lease-reaper.ts";

export class StrayLeases {
  readonly #switchedOff: Set<string>;
  /** Those of the same moment go together: after a change of leaders every agent may have lost an answer. */
  readonly #ends: Batcher<UnderTerm<string, Term>, void>;

  /** `switchedOff`: agents that were ended for a term that is about to begin. They stay in it until their jobs were taken back. */
  constructor(
    { clock }: Pick<Platform, "clock">,
    reaper: Pick<LeaseReaper, "recover">,
    switchedOff: Set<string>,
  ) {
    this.#switchedOff = switchedOff;
    const flush = byTerm(async (holders: readonly string[], term: Term) => {
      await reaper.recover({ by: "holders", names: [...new Set(holders)] }, term);
      return holders.map(() => {});
    });
    this.#ends = new Batcher({ clock, flush });
  }

  /** Ends what agents that were switched off have left behind. Does nothing when there are none, so that it can be tried again. */
  async clear(term: Term): Promise<void> {
    const agents = [...this.#switchedOff];
    await Promise.all(agents.map((agent) => this.#ends.add({ write: leasesOf(agent), term })));
    for (const agent of agents) this.#switchedOff.delete(agent);
  }

  async unanswered(agent: string, requests: readonly string[], term: Term): Promise<void> {
    await Promise.all(requests.map((each) => this.#ends.add({ write: leasesOf(agent, each), term })));
  }
}
