/** What the cluster tells by itself: how it fares, and what happens in it. */

import { computed, signal } from "@preact/signals";
import { heardTime } from "../clock.ts";
import { Line } from "../streams/line.ts";
import type { FromHub, Link } from "../streams/messages.ts";
import type { OverviewBody } from "../../../src/api/overview.ts";

export const link = signal<Link>({ state: "connecting", since: Date.now(), why: null });
export const overview = signal<OverviewBody | null>(null);
/** Among peers only the scheduler leads them all; each does the rest for its own store. */
export const amongPeers = computed(() => overview.value?.cluster.coordination === "bully");
/** Counts up with every piece of news: what is shown may have changed. */
export const pulse = signal(0);

export interface Moment {
  readonly at: number;
  readonly overview: OverviewBody;
}

/** The overviews of the last minutes, oldest first, for the charts. */
export const moments = signal<readonly Moment[]>([]);
const MOMENTS_MS = 15 * 60_000;

function hear(message: Exclude<FromHub, { is: "log" }>): void {
  if (message.is === "link") {
    const isNew = message.link.state === "live" && link.value.state !== "live";
    link.value = message.link;
    // Whatever was missed meanwhile is asked for.
    if (isNew) pulse.value++;
    return;
  }
  if (message.is === "overview") {
    heardTime(message.body.at, message.heardAt);
    overview.value = message.body;
    const at = Date.parse(message.body.at);
    const kept = moments.value.filter((each) => each.at > at - MOMENTS_MS && each.at !== at);
    moments.value = [...kept, { at, overview: message.body }];
  }
  pulse.value++;
}

export const line = new Line(hear);
