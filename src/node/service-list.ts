/**
 * One ordered list of services: started one after the other, stopped in reverse. A start that needs a database which is
 * not available yet is tried again for a while.
 */

import { hasCode } from "../core/errors.ts";
import { retry } from "../platform/loop.ts";
import type { Platform } from "../platform/platform.ts";
import { serviceOf, type Service } from "../platform/service.ts";

const RETRY_MS = 500;

export class ServiceList {
  readonly #platform: Pick<Platform, "clock" | "log">;
  readonly #stopping: AbortSignal;
  readonly #giveUpAt: number;
  readonly #started = new Set<Pick<Service, "stop">>();

  /** The first start of all services may wait for a database for `waitMs`, and until `stopping`. */
  constructor(platform: Pick<Platform, "clock" | "log">, waitMs: number, stopping: AbortSignal) {
    this.#platform = platform;
    this.#stopping = stopping;
    this.#giveUpAt = platform.clock.monotonic() + waitMs;
  }

  async start(...services: readonly (Service | null | undefined)[]): Promise<void> {
    for (const service of services) {
      if (!service) continue;
      await this.#whenAvailable(() => service.start());
      this.#started.add(service);
    }
  }

  async open<Opened extends { close(): Promise<void> }>(open: () => Promise<Opened>): Promise<Opened> {
    const opened = await this.#whenAvailable(open);
    this.#started.add({ stop: () => opened.close() });
    return opened;
  }

  /** Those that are given, or all that were started. What cannot be stopped is logged: leases run out by themselves. */
  async stop(...services: readonly (Service | null | undefined)[]): Promise<void> {
    const all = services.length > 0 ? services : [...this.#started];
    for (const service of all.toReversed()) {
      try {
        await service?.stop();
      } catch (error) {
        this.#platform.log.error({ err: error }, "a service did not stop cleanly");
      }
    }
  }

  /** A database may come after its nodes, and may go away again between two of the services that need it. */
  #whenAvailable<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    const { clock, log } = this.#platform;
    let waiting = false;
    const delayMs = (error: unknown): number | null => {
      if (clock.monotonic() >= this.#giveUpAt || !hasCode(error, "STORE_UNAVAILABLE")) return null;
      if (!waiting) log.warn({ err: error }, "the store is not available yet; trying again");
      waiting = true;
      return RETRY_MS;
    };
    return retry(clock, call, delayMs, this.#stopping);
  }
}

export function atStop(step: () => void): Service {
  return serviceOf(() => {}, step);
}

/** Several services as one: they start and stop at the same time. */
export function together(services: readonly Service[]): Service {
  return serviceOf(
    async () => void (await Promise.all(services.map((service) => service.start()))),
    async () => void (await Promise.all(services.map((service) => service.stop()))),
  );
}
