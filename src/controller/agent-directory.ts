/**
 * The agents, as the leader knows them. A new or changed agent is stored before it is answered. Later heartbeats are
 * kept in memory and stored for all agents together at intervals, so that after a change of leader the last contact may
 * look a few seconds older.
 */

import type { AgentState } from "../core/agent.ts";
import type { Term } from "../core/leadership/term.ts";
import { Batcher, byTerm, type UnderTerm } from "../platform/batcher.ts";
import type { Platform } from "../platform/platform.ts";
import type { Agent, AgentSeen } from "../store/agents.ts";
import type { Store } from "../store/store.ts";

export interface AgentNote {
  readonly name: string;
  /** What is left out stays as it was. */
  readonly capabilities?: readonly string[];
  readonly version?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly running?: number;
}

export interface Heartbeat extends AgentNote {
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

interface Tenure {
  readonly term: Term;
  readonly known: Promise<Map<string, AgentSeen>>;
}

export class AgentDirectory {
  readonly #platform: Pick<Platform, "clock" | "events">;
  readonly #o: AgentDirectoryOptions;
  readonly #writes: Batcher<UnderTerm<AgentSeen, Term>, void>;
  /** Seen again since the last time that this was stored. */
  #refreshed = new Map<string, AgentSeen>();
  #current: Tenure | null = null;

  constructor(platform: Pick<Platform, "clock" | "events">, options: AgentDirectoryOptions) {
    this.#platform = platform;
    this.#o = options;
    const flush = byTerm((agents: readonly AgentSeen[], term: Term) => this.#write(agents, term));
    this.#writes = new Batcher({ clock: platform.clock, flush });
  }

  async seen(note: AgentNote, term: Term): Promise<void> {
    const known = await this.#known(term);
    const before = this.#refreshed.get(note.name) ?? known.get(note.name);
    const agent = noted(note, before);
    if (before && alike(before, agent)) return void this.#refreshed.set(agent.name, agent);
    await this.#writes.add({ write: agent, term });
    known.set(agent.name, agent);
    this.#refreshed.delete(agent.name);
    if (!before) this.#o.onNew(agent);
  }

  /** False when there is none of that name. What was noted of it before is not stored afterwards, and does not bring it back. */
  async remove(name: string, term: Term): Promise<boolean> {
    const known = await this.#known(term);
    known.delete(name);
    this.#refreshed.delete(name);
    await this.#writes.idle();
    return this.#platform.events.fenced("agents.remove", this.#o.store.agents.remove(name, term));
  }

  /** Stores who was seen, those who wait here among them: their open requests are a sign of life. */
  async refresh(waiting: Iterable<string>, term: Term): Promise<void> {
    const known = await this.#known(term);
    for (const name of waiting) {
      const agent = known.get(name);
      if (agent && !this.#refreshed.has(name)) this.#refreshed.set(name, agent);
    }
    const refreshed = this.#refreshed;
    if (refreshed.size === 0) return;
    this.#refreshed = new Map();
    await Promise.all([...refreshed.values()].map((agent) => this.#writes.add({ write: agent, term })));
    for (const agent of refreshed.values()) if (known.has(agent.name)) known.set(agent.name, agent);
  }

  async purge(term: Term): Promise<void> {
    const { store, forgetAfterMs } = this.#o;
    const purging = store.purge({ of: "agents", ageMs: forgetAfterMs }, term);
    const removed = await this.#platform.events.fenced("agents.purge", purging);
    // Whoever is seen again must be known as new.
    if (removed > 0) this.#current = null;
  }

  /** The term is over; the next leader, perhaps ourselves, reads them anew. */
  forget(): void {
    this.#current = null;
    this.#refreshed.clear();
  }

  #known(term: Term): Promise<Map<string, AgentSeen>> {
    if (this.#current?.term.epoch !== term.epoch) {
      const known = this.#o.store.agents.list(false).then(byName);
      this.#current = { term, known };
      known.catch(() => (this.#current = null));
    }
    return this.#current.known;
  }

  async #write(agents: readonly AgentSeen[], term: Term): Promise<void[]> {
    // The last word on an agent counts: one statement cannot write a row twice.
    const last = new Map(agents.map((agent) => [agent.name, agent]));
    const seen = this.#o.store.agents.seen([...last.values()], term);
    await this.#platform.events.fenced("agents.seen", seen);
    return agents.map(() => {});
  }
}

function byName(agents: readonly Agent[]): Map<string, AgentSeen> {
  return new Map(agents.map((agent) => [agent.name, agent]));
}

function noted(note: AgentNote, before: AgentSeen | undefined): AgentSeen {
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
