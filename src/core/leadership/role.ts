/**
 * The leader role of a node, and the actions that each change requires.
 *
 *              acquired                       drain
 *   STANDBY ---------------> LEADER ---------------------> DRAINING (with its term)
 *      ^ ^                     |                               | stepped_down, lost
 *      | '-------- lost -------'                               v
 *      '---------------------- resume ----------------- DRAINING (without)
 *
 * A draining node reports DRAINING until it takes work again, also after its term has ended, so that callers send work
 * to other nodes.
 */

import type { Term } from "./term.ts";

export type Role = "LEADER" | "STANDBY" | "DRAINING";

/** What a node says of its own role at `GET /role`. */
export function roleOf(held: Term | null, draining: boolean): Role {
  if (draining) return "DRAINING";
  return held ? "LEADER" : "STANDBY";
}

export interface RoleState {
  readonly role: Role;
  /** Our own; null unless we lead, or drain and have not stepped down yet. */
  readonly term: Term | null;
}

export const STANDBY_STATE: RoleState = { role: "STANDBY", term: null };

export type RoleEvent =
  | { readonly event: "acquired"; readonly term: Term }
  /** The term is over, whoever ended it. */
  | { readonly event: "lost" }
  | { readonly event: "drain" }
  /** The grace for what was under way is over. */
  | { readonly event: "stepped_down" }
  | { readonly event: "resume" };

/** To be carried out in the order given: of the agent beside a controller, and of what the controller accepts. */
export type RoleAction =
  | "stop_agent"
  | "start_agent"
  | "open_writes"
  | "stop_leasing"
  | "close_writes"
  | "release_lock";

export interface RoleStep {
  readonly standing: RoleState;
  readonly actions: readonly RoleAction[];
}

/** Whatever cannot be in a standing changes nothing: events of an election and of an operator cross on their way. */
export function step(standing: RoleState, event: RoleEvent): RoleStep {
  switch (event.event) {
    case "acquired":
      return acquired(standing, event.term);
    case "lost":
      if (!standing.term) return stay(standing);
      return standing.role === "DRAINING"
        ? go({ role: "DRAINING", term: null }, "close_writes")
        : go(STANDBY_STATE, "close_writes", "start_agent");
    case "drain":
      if (standing.role === "DRAINING") return stay(standing);
      return standing.term
        ? go({ role: "DRAINING", term: standing.term }, "stop_leasing")
        : go({ role: "DRAINING", term: null });
    case "stepped_down":
      if (standing.role !== "DRAINING" || !standing.term) return stay(standing);
      return go({ role: "DRAINING", term: null }, "close_writes", "release_lock");
    case "resume":
      if (standing.role !== "DRAINING") return stay(standing);
      return standing.term
        ? go({ role: "LEADER", term: standing.term }, "open_writes")
        : go(STANDBY_STATE, "start_agent");
  }
}

/** The agent is off before the first write: nobody schedules and works on one machine. */
function acquired(standing: RoleState, term: Term): RoleStep {
  if (standing.term && standing.term.epoch >= term.epoch) return stay(standing);
  // Granted to a node that is about to leave: somebody else should have it.
  if (standing.role === "DRAINING") {
    const closing: RoleAction[] = standing.term ? ["close_writes"] : [];
    return go({ role: "DRAINING", term: null }, ...closing, "release_lock");
  }
  return go({ role: "LEADER", term }, "stop_agent", "open_writes");
}

function go(standing: RoleState, ...actions: RoleAction[]): RoleStep {
  return { standing, actions };
}

function stay(standing: RoleState): RoleStep {
  return { standing, actions: [] };
}

/** `lead`: new work, leases, agents. `finish`: results, renewals and logs of runs that began in this very term. */
export type Write = "lead" | "finish";

export function permits({ role, term }: RoleState, write: Write): boolean {
  return term !== null && (role === "LEADER" || write === "finish");
}
