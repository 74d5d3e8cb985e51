/**
 * The agents, as the leader knows them. A new or changed agent is stored before it is answered. Later heartbeats are
 * kept in memory and stored for all agents together at intervals, so that after a change of leader the last contact may
 * look a few seconds older.
 */

import type { AgentState } from "../core/agent.ts";
import type { Term } from "../core/leadership/term.ts";
import { Batcher, byTerm } from "../platform/batcher.ts";
import type { Platform } from "../platform/platform.ts";
import type { Agent, AgentSeen } from "../store/agents.ts";
import type { Store } from "../store/store.ts";

/** Says that an agent lives, and what it is. */
export interface Heartbeat {
  readonly name: string;
  /** What is left out stays as it was. */
  readonly capabilities?: readonly string[];
  readonly version?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly running?: number;
  /** Names of requests for leases whose answers never arrived: what was leased with them is free again. */
  readonly unanswered?: readonly string[];
}

export interface AgentView extends Agent {
  readonly state: AgentState;
}

export interface AgentDirectoryOptions {
  readonly store: Pick<Store, "agents" | "purge">;
  readonly forgetAfterMs: number;
  readonly onNew: (agent: AgentSeen) => void;
}

export type AgentDirectory = ReturnType<typeof agentDirectory>;

export function agentDirectory(
  { clock, events }: Pick<Platform, "clock" | "events">,
  { store, forgetAfterMs, onNew }: AgentDirectoryOptions,
) {
  /** Seen again since the last time that this was stored. */
  let refreshed = new Map<string, AgentSeen>();
  let current: { readonly term: Term; readonly known: Promise<Map<string, AgentSeen>> } | null = null;

  const knownIn = (term: Term): Promise<Map<string, AgentSeen>> => {
    if (current?.term.epoch !== term.epoch) {
      const known = store.agents.list(false).then(byName);
      current = { term, known };
      known.catch(() => (current = null));
    }
    return current.known;
  };

  const flush = byTerm(async (agents: readonly AgentSeen[], term: Term): Promise<void[]> => {
    // The last word on an agent counts: one statement cannot write a row twice.
    const last = new Map(agents.map((agent) => [agent.name, agent]));
    await events.fenced("agents.seen", store.agents.seen([...last.values()], term));
    return agents.map(() => {});
  });
  const writes = new Batcher({ clock, flush });

  return {
    async seen(note: Omit<Heartbeat, "unanswered">, term: Term): Promise<void> {
      const known = await knownIn(term);
      const before = refreshed.get(note.name) ?? known.get(note.name);
      const agent = noted(note, before);
      if (before && alike(before, agent)) return void refreshed.set(agent.name, agent);
      await writes.add({ write: agent, term });
      known.set(agent.name, agent);
      refreshed.delete(agent.name);
      if (!before) onNew(agent);
    },

    /** False when there is none of that name. What was noted of it before is not stored afterwards, and does not bring it back. */
    async remove(name: string, term: Term): Promise<boolean> {
      const known = await knownIn(term);
      known.delete(name);
      refreshed.delete(name);
      await writes.idle();
      return events.fenced("agents.remove", store.agents.remove(name, term));
    },

    /** Stores who was seen, those who wait here among them: their open requests are a sign of life. */
    async refresh(waiting: Iterable<string>, term: Term): Promise<void> {
      const known = await knownIn(term);
      for (const name of waiting) {
        const agent = known.get(name);
        if (agent && !refreshed.has(name)) refreshed.set(name, agent);
      }
      const agents = [...refreshed.values()];
      refreshed = new Map();
      await Promise.all(agents.map((agent) => writes.add({ write: agent, term })));
      for (const agent of agents) if (known.has(agent.name)) known.set(agent.name, agent);
    },

    async purge(term: Term): Promise<void> {
      const purging = store.purge({ of: "agents", ageMs: forgetAfterMs }, term);
      const removed = await events.fenced("agents.purge", purging);
      // Whoever is seen again must be known as new.
      if (removed > 0) current = null;
    },

    /** The term is over; the next leader, perhaps ourselves, reads them anew. */
    forget(): void {
      current = null;
      refreshed.clear();
    },
  };
}

function byName(agents: readonly Agent[]): Map<string, AgentSeen> {
  return new Map(agents.map((agent) => [agent.name, agent]));
}

function noted(note: Heartbeat, before: AgentSeen | undefined): AgentSeen {
  return {
    name: note.name,
    capabilities: note.capabilities ? [...new Set(note.capabilities)].sort() : (before?.capabilities ?? []),
    version: note.version ?? before?.version ?? null,
    labels: note.labels ? JSON.stringify(note.labels) : (before?.labels ?? "{}"),
    running: note.running ?? before?.running ?? 0,
  };
}

/** How many jobs it runs changes all the time, and is stored when it is seen again. */
function alike(a: AgentSeen, b: AgentSeen): boolean {
  return (
    a.version === b.version &&
    a.labels === b.labels &&
    a.capabilities.length === b.capabilities.length &&
    a.capabilities.every((name, at) => name === b.capabilities[at])
  );
}
