/** What a node has for people who look at the cluster: what they want to know of the store, live, and what it runs with. */

import { LiveFeed } from "./api/live-feed.ts";
import type { NodeServices } from "./api/node-services.ts";
import type { Schedules } from "./jobs/schedule-service.ts";
import type { BacklogReader } from "./cluster/backlog.ts";
import { StoreLooks } from "./cluster/store-look.ts";
import type { Settings } from "./config/settings.ts";
import { shownSettings } from "./config/shown-settings.ts";
import type { Clock } from "./platform/clock.ts";
import type { Store } from "./store/store.ts";

export interface InsightOptions {
  readonly settings: Settings;
  readonly store: Store;
  readonly backlog: BacklogReader;
  readonly schedules: Pick<Schedules, "list">;
  /** Built later, of what is made here. */
  readonly services: () => NodeServices;
  readonly clock: Clock;
}

export function openInsight(options: InsightOptions): Pick<NodeServices, "insight" | "live" | "settings"> {
  const { settings, store, backlog, schedules, services, clock } = options;
  return {
    insight: new StoreLooks({
      store,
      backlog,
      schedules: () => schedules.list(),
      agentStaleMs: settings.agents.staleAfterMs,
      clock,
    }),
    live: new LiveFeed(services, clock),
    settings: { list: () => shownSettings(settings) },
  };
}
