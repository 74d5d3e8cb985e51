/**
 * Leases that the store has and nobody holds: of an agent that was switched off while nobody led, and of answers that never
 * arrived. Nobody died over them, so they are ended at once and as interruptions; left alone, they would run out as crashes.
 */

import { leasesOf } from "../core/agent.ts";
import type { Term } from "../core/term.ts";
import { Batcher } from "../platform/batcher.ts";
import type { LeaseReaper } from "../jobs/lease-reaper.ts";

export interface StrayLeasesOptions {
  /** Built later: whom it tells of what it recovers is built of us. */
  readonly reaper: () => Pick<LeaseReaper, "recover">;
}

interface Stray {
  readonly holder: string;
  readonly term: Term;
}

export class StrayLeases {
  readonly #o: StrayLeasesOptions;
  /** Those of the same moment go together: after a change of leaders every agent may have lost an answer. */
  readonly #ends: Batcher<Stray, void>;
  readonly #off = new Set<string>();

  constructor(options: StrayLeasesOptions) {
    this.#o = options;
    this.#ends = new Batcher({ flush: (strays) => this.#end(strays) });
  }

  /** These agents were ended for the sake of a term that is about to begin. Kept until a term of ours has heard of it. */
  switchedOff(agents: readonly string[]): void {
    for (const agent of agents) this.#off.add(agent);
  }

  /** Ends what they have left behind. Does nothing when there are none, so that it can be tried again. */
  async clear(term: Term): Promise<void> {
    const agents = [...this.#off];
    await Promise.all(agents.map((agent) => this.#ends.add({ holder: leasesOf(agent), term })));
    for (const agent of agents) this.#off.delete(agent);
  }

  async unanswered(agent: string, requests: readonly string[], term: Term): Promise<void> {
    await Promise.all(requests.map((each) => this.#ends.add({ holder: leasesOf(agent, each), term })));
  }

  async #end(strays: readonly Stray[]): Promise<void[]> {
    for (const [term, each] of Map.groupBy(strays, (stray) => stray.term)) {
      const names = [...new Set(each.map(({ holder }) => holder))];
      await this.#o.reaper().recover({ by: "holders", names }, term);
    }
    return strays.map(() => {});
  }
}
