/**
 * The contract of a lease lock. Every keeper of the coordination port runs it; `broken.test.ts` shows that it bites.
 * No proof names a winner.
 */

import type { OpenLock } from "../../support/lock-world.ts";
import { inWorldOf, prove, type Skips } from "../promises.ts";
import { grantPromises } from "./grant.ts";
import { modelPromises } from "./model.ts";
import { racePromises } from "./race.ts";
import { termPromises } from "./term.ts";

export const lockPromises = { ...grantPromises, ...termPromises, ...racePromises, ...modelPromises };

export function leaseLockContract(name: string, open: OpenLock, { skip = {} }: { skip?: Skips } = {}): void {
  prove(`the ${name} lease lock`, lockPromises, inWorldOf(open), skip);
}
