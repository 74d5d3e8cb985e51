/**
 * The tasks that the cluster has had so far, to tell a misspelt name from the task of a worker that is away. A job must not be refused
 * because of a restart, so in doubt a name is known:
 *
 *   without a call   tasks of this node and of every member, also of dead ones; all names while a member has not been heard yet
 *   with a call      tasks that nodes have noted in a shared store, and those of agents; all names when the store cannot be read
 *   nothing known    no node and no agent has ever had a task: the first worker is still to come, so all names are known
 */

import { BatonError, nearest } from "../../core/errors.ts";
import type { NodeInfo } from "../../core/node.ts";
import { Cached } from "../../platform/cached.ts";
import type { Platform } from "../../platform/platform.ts";
import type { Store } from "../../store/store.ts";

/** The jobs of one request share a read. Longer, and a task whose first worker has just started would be refused. */
const READ_MS = 100;

interface KnownTasksOptions {
  readonly store: Pick<Store, "agents" | "notedTasks">;
  readonly tasks: { names(): ReadonlySet<string> };
  /** Of the cluster. One that has not been heard yet has no incarnation. */
  readonly nodes: () => readonly Pick<NodeInfo, "incarnation" | "capabilities">[];
}

export interface TaskCheck {
  /** The place in a list, as `[3].`. */
  readonly at?: string;
  /** The caller waits for a result, and nobody comes to run the task meanwhile: where no task is known, none is known. */
  readonly calls?: boolean;
}

export class KnownTasks {
  readonly #options: KnownTasksOptions;
  readonly #stored: Cached<readonly string[]>;
  /** Of members, which may leave the cluster. */
  readonly #met = new Set<string>();

  constructor({ clock }: Pick<Platform, "clock">, options: KnownTasksOptions) {
    this.#options = options;
    this.#stored = new Cached(clock, READ_MS, async () => {
      const { store } = options;
      const [noted = [], agents] = await Promise.all([store.notedTasks?.(), store.agents.list(true)]);
      return [...noted, ...agents.flatMap(({ capabilities }) => capabilities)];
    });
  }

  /** Without a call of the store; false means that `require` can tell. */
  has(task: string): boolean {
    const { tasks, nodes } = this.#options;
    if (tasks.names().has(task) || this.#met.has(task)) return true;
    for (const { incarnation, capabilities } of nodes()) {
      if (incarnation === "") return true;
      if (!capabilities.includes(task)) continue;
      this.#met.add(task);
      return true;
    }
    return false;
  }

  /** Rejects with UNKNOWN_TASK, and names the task that is like it. */
  async require(task: string, { at = "", calls = false }: TaskCheck = {}): Promise<void> {
    if (this.has(task)) return;
    const stored = await this.#stored.read().catch(() => null);
    if (stored === null || stored.includes(task)) return;
    const { tasks, nodes } = this.#options;
    const known = new Set([...tasks.names(), ...nodes().flatMap((node) => node.capabilities), ...stored]);
    if (known.size === 0 && !calls) return;
    const near = nearest(task, known);
    const guess = near === null ? "" : `; did you mean ${near}?`;
    const otherwise = calls ? "" : `, or give "${at}allow_unknown": true`;
    const message = `no node of this cluster has had the task "${task}" so far${guess}; start one that has it${otherwise}`;
    throw new BatonError("UNKNOWN_TASK", message, { field: `${at}task` });
  }
}
