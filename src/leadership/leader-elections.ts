/**
 * The elections of a node, one for each leader role, each with a lock, epochs and duties of its own. A node with the role
 * `scheduler` is a candidate for all of them; the others only observe who leads.
 */

import type { NodeName } from "../core/ids.ts";
import { LEADER_ROLES, type LeaderRole, type TermChange } from "../core/leadership/term.ts";
import type { Platform } from "../platform/platform.ts";
import { Lifecycle } from "../platform/service.ts";
import type { Coordination, Leadership } from "./coordination.ts";
import type { Author } from "../store/store.ts";
import { Elector, type ElectorSettings, type LeaderGate } from "./elector.ts";

interface LeaderElectionsOptions extends Pick<Platform, "identity" | "clock" | "random" | "log"> {
  readonly coordination: Coordination;
  readonly stands: (role: LeaderRole) => boolean;
  /** What has to happen before a term of the scheduler begins. */
  readonly gate?: LeaderGate;
  readonly onChange?: (change: TermChange) => void;
  readonly settings: ElectorSettings;
}

export class LeaderElections extends Lifecycle {
  readonly #electors: Readonly<Record<LeaderRole, Elector>>;
  /** A drained node is no candidate, and still answers who leads. */
  #withdrawn = false;

  constructor(options: LeaderElectionsOptions) {
    super();
    const { coordination, stands, gate, ...rest } = options;
    const { membership } = coordination;
    const electors = LEADER_ROLES.map((role): [LeaderRole, Elector] => [
      role,
      new Elector({
        ...rest,
        role,
        lock: coordination.lock(role),
        // A node whose name another one has taken does not lead: callers would be sent to the other.
        stands: () => !this.#withdrawn && stands(role) && membership.displaced() === null,
        gate: role === "scheduler" ? gate : undefined,
      }),
    ]);
    this.#electors = Object.fromEntries(electors) as Record<LeaderRole, Elector>;
  }

  get scheduler(): Leadership {
    return this.#electors.scheduler;
  }

  of(role: LeaderRole): Leadership {
    return this.#electors[role];
  }

  async withdraw(): Promise<void> {
    this.#withdrawn = true;
    await this.#each((elector) => elector.reconsider());
  }

  async stand(): Promise<void> {
    this.#withdrawn = false;
    await this.#each((elector) => elector.reconsider());
  }

  protected async onStart(): Promise<void> {
    await this.#each((elector) => elector.start());
  }

  protected async onStop(): Promise<void> {
    await this.#each((elector) => elector.stop());
  }

  async #each(work: (elector: Elector) => Promise<void>): Promise<void> {
    await Promise.all(Object.values(this.#electors).map(work));
  }
}

/** The numbers that everything written by this node carries. One object until the leader changes: it is compared often. */
export function authorOf(node: NodeName, epoch: () => number): () => Author {
  let author: Author = { node, ownerEpoch: 0, leaderEpoch: 0 };
  return () => {
    const current = epoch();
    if (current > author.leaderEpoch) author = { node, ownerEpoch: current, leaderEpoch: current };
    return author;
  };
}
