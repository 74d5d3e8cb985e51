/**
 * Agents in memory: capabilities, version and the time of the last heartbeat. Only the leader writes, under its term.
 */

import type { Term } from "../../core/leadership/term.ts";
import type { Agent, AgentSeen, AgentStore } from "../agents.ts";
import type { MemoryTerms } from "./terms.ts";
import type { Turn } from "./turn.ts";

export class MemoryAgents implements AgentStore {
  readonly #terms: MemoryTerms;
  readonly #turn: Turn;
  readonly #agents = new Map<string, Agent>();

  constructor(options: { readonly terms: MemoryTerms; readonly turn: Turn }) {
    this.#terms = options.terms;
    this.#turn = options.turn;
  }

  seen(agents: readonly AgentSeen[], fence: Term): Promise<void> {
    return this.#turn((now) => {
      this.#terms.require(fence);
      for (const { name, capabilities, version, labels, running } of agents) {
        this.#agents.set(name, {
          name,
          capabilities: [...capabilities],
          version,
          labels,
          running,
          firstSeenAt: this.#agents.get(name)?.firstSeenAt ?? now,
          lastSeenAt: now,
          removedAt: null,
          leaderEpoch: fence.epoch,
        });
      }
    });
  }

  remove(name: string, fence: Term): Promise<boolean> {
    return this.#turn((now) => {
      this.#terms.require(fence);
      const agent = this.#agents.get(name);
      if (!agent || agent.removedAt !== null) return false;
      this.#agents.set(name, { ...agent, removedAt: now, leaderEpoch: fence.epoch });
      return true;
    });
  }

  list(withRemoved: boolean): Promise<readonly Agent[]> {
    return this.#turn(() =>
      [...this.#agents.values()]
        .filter(({ removedAt }) => withRemoved || removedAt === null)
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    );
  }

  purge(ageMs: number, fence: Term): Promise<number> {
    return this.#turn((now) => {
      this.#terms.require(fence);
      let forgotten = 0;
      for (const { name, lastSeenAt, removedAt } of this.#agents.values()) {
        if ((removedAt ?? lastSeenAt) > now - ageMs) continue;
        this.#agents.delete(name);
        forgotten++;
      }
      return forgotten;
    });
  }
}
