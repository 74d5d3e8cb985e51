/**
 * The ports of an agent's worker: jobs, leases and results go over the link to the leader. A result counts as written
 * once the link has it, which posts it for as long as it takes. Leases are renewed by the link alone, so that a handler
 * that blocks this thread loses none.
 */

import type { LeaseId } from "../core/ids.ts";
import type {
  ClaimPort,
  LeaseListener,
  LeasePort,
  ResultPort,
  WorkerPorts,
} from "../jobs/run/worker-ports.ts";
import type { TaskRegistry } from "../jobs/tasks/task-registry.ts";
import type { ClaimedJob, Outcome, Run, Settlement } from "../store/store.ts";
import { decide, type Ended, type FromLink, type LinkPort, type ToLink } from "./link-messages.ts";

/** The leader made the leases, and the link keeps them. */
const KEPT_BY_LINK: LeasePort = {
  id: "" as LeaseId,
  opens: true,
  granted: () => true,
  refused() {},
  holds: () => true,
  retire() {},
  start() {},
  stop() {},
};

export class LinkPorts implements WorkerPorts {
  /** Null while the agent is stopped. */
  link: LinkPort | null = null;
  readonly #tasks: Pick<TaskRegistry, "get">;
  #listener: LeaseListener | null = null;
  #claimed: (jobs: readonly ClaimedJob[]) => void = () => {};
  #finished: (undelivered: number) => void = () => {};

  constructor(tasks: Pick<TaskRegistry, "get">) {
    this.#tasks = tasks;
  }

  /** Every claim is answered by one offer, at the latest when the link drains. */
  readonly claims: ClaimPort = {
    claim: async ({ limit }) => {
      const offered = new Promise<readonly ClaimedJob[]>((resolve) => (this.#claimed = resolve));
      this.#send({ say: "claim", limit });
      // When to ask the leader again is for the link to decide.
      return { jobs: [...(await offered)], held: true, nextDueInMs: 0 };
    },
    close: async () => this.#send({ say: "drain" }),
  };

  readonly results: ResultPort = {
    record: async ({ reports, settlements }) => {
      for (const { run, logs, progress } of reports)
        this.#send({ say: "report", run: keyOf(run), report: { logs, progress } });
      for (const settlement of settlements) this.#settle(settlement);
      return { reported: reports.map(() => "accepted"), settled: settlements.map(() => "accepted") };
    },
    forget: (run) => this.#send({ say: "forget", run: keyOf(run) }),
  };

  readonly lease = (listener: LeaseListener): LeasePort => {
    this.#listener = listener;
    return KEPT_BY_LINK;
  };

  hear(message: FromLink): void {
    switch (message.say) {
      case "offer":
        return this.#claimed(decide(message.claim) ? this.#known(message.jobs) : []);
      case "cancel":
        return this.#listener?.onCancelRequest(message.id, message.reason);
      case "lost":
        return this.#listener?.onLost(message.lease, message.why);
      case "finished":
        return this.#finished(message.undelivered);
    }
  }

  /** Asks the link to deliver what it has within so long. Resolves with how many results it could not deliver. */
  finish(withinMs: number): Promise<number> {
    const finished = new Promise<number>((resolve) => (this.#finished = resolve));
    this.#send({ say: "finish", withinMs });
    return finished;
  }

  /** A job that this agent cannot run fails. To give it back would bring it here again at once. */
  #known(jobs: readonly ClaimedJob[]): ClaimedJob[] {
    return jobs.filter((job) => {
      if (this.#tasks.get(job.task)) return true;
      const message = `this agent has no task ${job.task}, and did not ask for it`;
      const error = { code: "UNKNOWN_TASK", message };
      this.#settle({ run: job, outcome: { kind: "retry", error, delayMs: 0 } });
      return false;
    });
  }

  #settle({ run, outcome }: Settlement): void {
    this.#send({ say: "result", run: keyOf(run), ended: endedOf(outcome) });
  }

  #send(message: ToLink): void {
    this.link?.send(message);
  }
}

function keyOf({ lease, id, jobEpoch }: Run): Run {
  return { lease, id, jobEpoch };
}

/** What a worker would write into the store, as it is posted. When a failed job runs again is the leader's decision, unless the handler said it. */
function endedOf(outcome: Outcome): Ended {
  switch (outcome.kind) {
    case "completed":
      return { status: "succeeded", result: outcome.result };
    case "retry":
    case "failed": {
      const { message, code, stack } = outcome.error;
      const retryable = outcome.kind === "retry";
      const retry_after_ms = retryable && outcome.asked ? outcome.delayMs : undefined;
      return { status: "failed", error: { message, code, stack, retryable, retry_after_ms } };
    }
    case "cancelled": {
      const { message, code } = outcome.error;
      return { status: "cancelled", error: { message, code } };
    }
    case "interrupted":
    case "released":
      return { status: "released" };
  }
}
