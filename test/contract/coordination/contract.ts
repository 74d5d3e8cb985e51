/**
 * The contract of a lease lock. Every keeper of the coordination port runs it; `broken.test.ts` shows that it bites.
 * No proof names a winner.
 */

import { withLock, type OpenLock } from "../../support/lock-world.ts";
import { prove, type Skips } from "../promises.ts";
import { grantPromises } from "./grant.ts";
import { modelPromises } from "./model.ts";
import { racePromises } from "./race.ts";
import { termPromises } from "./term.ts";

export const lockPromises = { ...grantPromises, ...termPromises, ...racePromises, ...modelPromises };

export function leaseLockContract(name: string, open: OpenLock, { skip = {} }: { skip?: Skips } = {}): void {
  prove(`the ${name} lease lock`, lockPromises, withLock(open), skip);
}
