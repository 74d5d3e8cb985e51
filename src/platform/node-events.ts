/**
 * The events inside a node, for the journal, metrics and the event feed. The code that performs a write emits what the store has answered,
 * and never waits for listeners. They are called at once, in the order of their subscription; an error in one is logged.
 *
 * Job events are emitted once per batch. An event without listeners costs one comparison.
 */

import type { JobId, NodeName } from "../core/ids.ts";
import type { JobError, JobStatus } from "../core/jobs/job.ts";
import type { NodeIdentity, NodeStatus } from "../core/node.ts";
import { refusalOf, type LeaderWrite, type Refusal } from "../core/leadership/refused-write.ts";
import type { TermChange } from "../core/leadership/term.ts";
import type { Log } from "./log.ts";

export interface NodeEventMap {
  /** Stored here; without those that existed already. `answers` has the same order as `jobs`. */
  readonly "jobs.submitted": {
    readonly jobs: readonly { readonly task: string; readonly queue: string }[];
    readonly answers: readonly { readonly id: JobId; readonly status: JobStatus }[];
  };
  readonly "jobs.submit_failed": unknown;
  /** Runs that have ended their jobs, so many of each kind. The queue is not known of every run. */
  readonly "jobs.finished": readonly {
    readonly queue: string | undefined;
    readonly failed: boolean;
    readonly jobs: number;
  }[];
  /** A run here has ended, and the store knows. `thrown` is what its handler threw, where it did. */
  readonly "run.ended": EndedRun;
  /** Taken back from a worker that is gone, or from a run that took too long. */
  readonly "jobs.recovered": readonly {
    readonly id: JobId;
    readonly status: "queued" | "failed" | "cancelled";
    readonly quarantined: boolean;
  }[];
  readonly "schedule.fired": {
    readonly jobs: readonly { readonly id: JobId; readonly task: string; readonly queue: string }[];
    /** False where the nodes keep jobs of their own: then another node may have stored them. */
    readonly storedHere: boolean;
  };
  readonly "write.refused": Refusal;
  readonly "term.changed": TermChange;
  /** This node is registered with that status now. */
  readonly "node.status": NodeStatus | "left";
  /** This node has drained. What still ran was interrupted and put back. */
  readonly "node.drained": { readonly interrupted: number };
  readonly "node.removed": NodeName;
  /** Declared dead by this node, as the leader of that term; their work was taken back. */
  readonly "nodes.died": { readonly nodes: readonly NodeIdentity[]; readonly leaderEpoch: number };
  readonly "assignment.taken_over": {
    readonly assignment: number;
    readonly from: NodeName | null;
    readonly ownerEpoch: number;
    /** Null when it is not known. */
    readonly jobs: number | null;
    readonly reason: string;
  };
}

export interface EndedRun {
  readonly run: {
    readonly id: JobId;
    readonly task: string;
    readonly queue: string;
    readonly attempts: number;
  };
  readonly outcome:
    | { readonly kind: "completed"; readonly result: string }
    | { readonly kind: "retry"; readonly error: JobError; readonly delayMs: number }
    | { readonly kind: "failed" | "cancelled"; readonly error: JobError }
    | { readonly kind: "interrupted" | "released" };
  readonly thrown?: unknown;
}

type EventName = keyof NodeEventMap;
type Listener<Name extends EventName> = (payload: NodeEventMap[Name]) => void;

export class NodeEvents {
  readonly #log: Pick<Log, "error">;
  readonly #listeners: { [Name in EventName]?: Listener<Name>[] } = {};

  constructor(log: Pick<Log, "error">) {
    this.#log = log;
  }

  on<Name extends EventName>(name: Name, listener: Listener<Name>): void {
    const listeners: Listener<Name>[] = (this.#listeners[name] ??= []);
    listeners.push(listener);
  }

  emit<Name extends EventName>(name: Name, payload: NodeEventMap[Name]): void {
    const listeners = this.#listeners[name];
    if (listeners === undefined) return;
    for (const listener of listeners) {
      try {
        listener(payload);
      } catch (error) {
        this.#log.error({ err: error, event: name }, "a listener of a node event failed");
      }
    }
  }

  /** Passes a leader's write on as it is; a refusal because of a newer term is emitted. */
  fenced<Answer>(write: LeaderWrite, writing: Promise<Answer>): Promise<Answer> {
    writing.catch((error: unknown) => this.refused(write, error));
    return writing;
  }

  refused(write: LeaderWrite, error: unknown): void {
    const refusal = refusalOf(write, error);
    if (refusal) this.emit("write.refused", refusal);
  }
}
