import { Mutex } from "./loop.ts";

/** All long-lived objects start and stop in the same way, also twice or without a start; a stop during the start waits for it. */
export interface Service extends AsyncDisposable {
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a service and does the rest of a start. When that fails, the service is stopped again. */
export async function startWith(service: Service, rest: () => Promise<unknown>): Promise<void> {
  await service.start();
  try {
    await rest();
  } catch (error) {
    await service.stop();
    throw error;
  }
}

export abstract class Lifecycle implements Service {
  #phase: "new" | "running" | "stopped" = "new";
  /** Starts and stops happen one after the other, in the order in which they were asked for. */
  readonly #turns = new Mutex();

  protected abstract onStart(): Promise<void> | void;
  protected abstract onStop(): Promise<void> | void;

  get running(): boolean {
    return this.#phase === "running";
  }

  start(): Promise<void> {
    return this.#turns.run(async () => {
      if (this.#phase === "running") return;
      await this.onStart();
      this.#phase = "running";
    });
  }

  stop(): Promise<void> {
    return this.#turns.run(async () => {
      if (this.#phase !== "running") return;
      this.#phase = "stopped";
      await this.onStop();
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

type Step = () => Promise<void> | void;

export function serviceOf(onStart: Step, onStop: Step): Service {
  return new (class extends Lifecycle {
    protected readonly onStart = onStart;
    protected readonly onStop = onStop;
  })();
}
