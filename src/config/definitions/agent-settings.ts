/** The settings of agents, which lease jobs over HTTP. */

import { TIMER_MAX } from "./setting-definition.ts";
import type { Setting } from "./setting-definition.ts";

export const AGENT_SETTINGS = [
  {
    path: "agents.lease",
    kind: "duration",
    default: "30s",
    min: "100ms",
    max: TIMER_MAX,
    about: "How long leased jobs stay with an agent that does not renew its lease.",
    smaller: "An agent that is cut off for a moment loses jobs that it still runs.",
  },
  {
    path: "agents.stale_after",
    kind: "duration",
    default: "15s",
    min: "100ms",
    max: TIMER_MAX,
    about: "An agent that has not been seen for so long is shown as stale. It may still lease.",
    smaller: "Agents between two heartbeats look stale.",
  },
  {
    path: "agents.forget_after",
    kind: "duration",
    default: "1h",
    min: "1s",
    about: "Agents that have not been seen, or were removed, for so long are forgotten.",
    smaller: "Nobody can see any more who worked here a while ago.",
  },
] as const satisfies readonly Setting[];
