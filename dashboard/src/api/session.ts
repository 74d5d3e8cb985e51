/** Who looks at this page, and what they may do. */

import { computed, effect, signal } from "@preact/signals";
import { allows } from "../../../src/core/access/permissions.ts";
import { call, refusals } from "./call.ts";
import type { AnswerOf, Route } from "../../../src/api/operation-table.ts";
import { line } from "./live.ts";
import { neededFor } from "./permissions.ts";
import { asProblem } from "./problem.ts";

/** Null: not known yet, or not signed in. */
export const session = signal<AnswerOf<"GET /session"> | null>(null);
/** The node wants to know who we are before it tells anything. */
export const mustSignIn = signal(false);

/** Why that is not allowed; null if it is. */
export function barredFrom(route: Route): string | null {
  const needed = neededFor(route);
  const held = session.value?.permission;
  // Not known yet: the node will say.
  if (held === undefined || allows(held, needed)) return null;
  return `This needs the permission ${needed}; ${session.value?.principal ?? "you"} may only ${held}.`;
}

/** Null where nobody is asked. */
export const signedInAs = computed(() =>
  session.value?.open === false ? session.value.principal.replace(/^\w+:/, "") : null,
);

export async function look(): Promise<void> {
  try {
    session.value = await call("GET /session");
    mustSignIn.value = false;
  } catch (error) {
    if (asProblem(error).status === 401) mustSignIn.value = true;
  }
}

export async function signIn(user: string, password: string): Promise<void> {
  await call("POST /session", { body: { user, password } });
  await look();
  line.retry();
}

export async function signOut(): Promise<void> {
  await call("DELETE /session");
  session.value = null;
  mustSignIn.value = true;
}

effect(() => {
  if (refusals.value > 0) mustSignIn.value = true;
});
