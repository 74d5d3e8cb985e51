/** What a node says of its own role at `GET /role`. */

import type { Term } from "./term.ts";

export type Role = "LEADER" | "STANDBY" | "DRAINING";

export function roleOf(held: Term | null, draining: boolean): Role {
  if (draining) return "DRAINING";
  return held ? "LEADER" : "STANDBY";
}
