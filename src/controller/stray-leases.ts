/**
 * Stray leases: leases in the store that no agent holds, of agents that were switched off while there was no leader,
 * and of answers that never arrived. They are ended at once and counted as interruptions; otherwise they would expire
 * and count as crashes.
 */

import { leasesOf } from "../core/agent.ts";
import type { Term } from "../core/leadership/term.ts";
import { Batcher } from "../platform/batcher.ts";
import type { LeaseReaper } from "../jobs/recover/lease-reaper.ts";

export interface StrayLeasesOptions {
  readonly reaper: Pick<LeaseReaper, "recover">;
  /** Agents that were ended for a term that is about to begin. They stay in it until their jobs were taken back. */
  readonly switchedOff: Set<string>;
}

interface Stray {
  readonly holder: string;
  readonly term: Term;
}

export class StrayLeases {
  readonly #o: StrayLeasesOptions;
  /** Those of the same moment go together: after a change of leaders every agent may have lost an answer. */
  readonly #ends: Batcher<Stray, void>;

  constructor(options: StrayLeasesOptions) {
    this.#o = options;
    this.#ends = new Batcher({ flush: (strays) => this.#end(strays) });
  }

  /** Ends what agents that were switched off have left behind. Does nothing when there are none, so that it can be tried again. */
  async clear(term: Term): Promise<void> {
    const { switchedOff } = this.#o;
    const agents = [...switchedOff];
    await Promise.all(agents.map((agent) => this.#ends.add({ holder: leasesOf(agent), term })));
    for (const agent of agents) switchedOff.delete(agent);
  }

  async unanswered(agent: string, requests: readonly string[], term: Term): Promise<void> {
    await Promise.all(requests.map((each) => this.#ends.add({ holder: leasesOf(agent, each), term })));
  }

  async #end(strays: readonly Stray[]): Promise<void[]> {
    for (const [term, each] of Map.groupBy(strays, (stray) => stray.term)) {
      const names = [...new Set(each.map(({ holder }) => holder))];
      await this.#o.reaper.recover({ by: "holders", names }, term);
    }
    return strays.map(() => {});
  }
}
