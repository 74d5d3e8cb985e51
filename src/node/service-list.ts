/**
 * One ordered list of services: started one after the other, stopped in reverse. A start that needs a database which is
 * not available yet is tried again for a while.
 */

import { hasCode } from "../core/errors.ts";
import { retry } from "../platform/loop.ts";
import type { Platform } from "../platform/platform.ts";
import { serviceOf, type Service } from "../platform/service.ts";

const RETRY_MS = 500;

export type ServiceList = ReturnType<typeof serviceList>;
type Services = readonly (Service | null | undefined)[];

/** The first start of all services may wait for a database for `waitMs`, and until `stopping`. */
export function serviceList(
  { clock, log }: Pick<Platform, "clock" | "log">,
  waitMs: number,
  stopping: AbortSignal,
) {
  const giveUpAt = clock.monotonic() + waitMs;
  const started = new Set<Pick<Service, "stop">>();

  /** A database may come after its nodes, and may go away again between two of the services that need it. */
  function whenAvailable<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    let waiting = false;
    const delayMs = (error: unknown): number | null => {
      if (clock.monotonic() >= giveUpAt || !hasCode(error, "STORE_UNAVAILABLE")) return null;
      if (!waiting) log.warn({ err: error }, "the store is not available yet; trying again");
      waiting = true;
      return RETRY_MS;
    };
    return retry(clock, call, delayMs, stopping);
  }

  return {
    async start(...services: Services): Promise<void> {
      for (const service of services) {
        if (!service) continue;
        await whenAvailable(() => service.start());
        started.add(service);
      }
    },

    async open<Opened extends { close(): Promise<void> }>(open: () => Promise<Opened>): Promise<Opened> {
      const opened = await whenAvailable(open);
      started.add({ stop: () => opened.close() });
      return opened;
    },

    /** Those that are given, or all that were started. What cannot be stopped is logged: leases run out by themselves. */
    async stop(...services: Services): Promise<void> {
      const all = services.length > 0 ? services : [...started];
      for (const service of all.toReversed()) {
        try {
          await service?.stop();
        } catch (error) {
          log.error({ err: error }, "a service did not stop cleanly");
        }
      }
    },
  };
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
