/** The settings of `baton controller`, which runs a controller and an agent. A plain node does not use them. */

import { TIMER_MAX } from "./setting-definition.ts";
import type { Setting } from "./setting-definition.ts";

export const CONTROLLER_SETTINGS = [
  {
    path: "controller.moonlight",
    kind: "boolean",
    default: true,
    about:
      "Whether an agent named `{name}-worker` runs beside a controller that stands by. While the controller leads, it is off in any case.",
  },
  {
    path: "controller.agent_command",
    kind: "list",
    default: [],
    about:
      "What to run as that agent, program and arguments, in place of `baton agent`: one in another language, for example. `{urls}` stands for the known nodes with commas between them, `{name}` for the agent's name.",
  },
  {
    path: "controller.agent_off",
    kind: "duration",
    default: "1s",
    min: "300ms",
    max: TIMER_MAX,
    about:
      "How long the agent may take to end when the controller is about to lead, which waits for it; then it is killed. Nobody leads in the meantime, so nobody could take its results: longer waits only help handlers that tidy up.",
    smaller: "Handlers are killed before they have tidied up.",
  },
  {
    path: "controller.restart_first",
    kind: "duration",
    default: "1s",
    min: "10ms",
    max: TIMER_MAX,
    about: "Wait before a child that crashed is started again; twice as long after each further crash.",
    smaller: "A child that cannot start keeps the machine busy with trying.",
  },
  {
    path: "controller.restart_max",
    kind: "duration",
    default: "30s",
    min: "10ms",
    max: TIMER_MAX,
    about: "Longest such wait. A child that lived for twice as long begins anew with the first one.",
  },
  {
    path: "controller.degraded_after",
    kind: "integer",
    default: 3,
    min: 1,
    max: 1_000,
    about:
      "After this many crashes of a child in a row the node-controller is `degraded`; it goes on trying.",
  },
  {
    path: "controller.wedged_after",
    kind: "duration",
    default: "15s",
    min: "500ms",
    max: TIMER_MAX,
    about:
      "A child that lives but does not answer for so long, or an agent that for so long leaves work for it lying, is killed and started again.",
    smaller: "A child that was only busy is restarted, and what it ran runs again.",
  },
] as const satisfies readonly Setting[];

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
