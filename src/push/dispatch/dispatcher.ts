import type { Channels } from "../../channels/channels.ts";
import type { Budgets } from "../../core/jobs/job.ts";
import type { Term } from "../../core/leadership/term.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import type { NodeEvents } from "../../platform/node-events.ts";
import type { OwnershipStore } from "../../store/ownership.ts";
import { DispatchTerm } from "./dispatch-term.ts";

export interface DispatcherSettings {
  /** How long a worker has to accept a job. Shorter, and jobs of a busy queue are dispatched twice, for nothing. */
  readonly timeoutMs: number;
  /** How often workers tell how they fare, at least. */
  readonly heartbeatMs: number;
}

export interface DispatcherOptions {
  readonly ownership: Pick<OwnershipStore, "dispatch" | "undispatch" | "outstanding">;
  readonly channels: Pick<Channels, "send" | "publish" | "subscribe">;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: NodeEvents;
  readonly budgets: Budgets;
  readonly settings?: Partial<DispatcherSettings>;
  /** Whether this life of a node is known to be over. */
  readonly isGone?: (incarnation: string) => boolean;
}

export const DISPATCH_DEFAULTS: DispatcherSettings = { timeoutMs: 5_000, heartbeatMs: 1_000 };

/** A leader's duty: hands due jobs out to the workers that want them, through the channels. */
export class Dispatcher {
  readonly #o: DispatcherOptions;
  #current: DispatchTerm | null = null;

  constructor(options: DispatcherOptions) {
    this.#o = options;
  }

  /** The dispatch queues that are used in the term; none while another node leads. */
  channels(): string[] {
    return this.#current?.channels ?? [];
  }

  /** Jobs may have become due. */
  wake(): void {
    this.#current?.wake();
  }

  async duty(term: Term, signal: AbortSignal): Promise<void> {
    const { settings, isGone = () => false, ...rest } = this.#o;
    const current = new DispatchTerm({ ...rest, ...DISPATCH_DEFAULTS, ...settings, isGone, term, signal });
    this.#current = current;
    try {
      await current.run();
    } finally {
      if (this.#current === current) this.#current = null;
    }
  }
}
