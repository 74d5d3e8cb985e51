/** Chance. Loaded by the client too, which runs where Node's own crypto is older or missing: only parts for nodes import it. */

import type * as NodeCrypto from "node:crypto";

/** Chance is passed in like time, so that a test can repeat it. */
export interface Random {
  /** In [0, 1). */
  chance(): number;
  /** A uuid whose first 48 bits are the time: ids made later sort later, but not within one millisecond. */
  timedUuid(): string;
  uuid(): string;
}

export const systemRandom: Random = {
  chance: () => Math.random(),
  timedUuid: () => nodeCrypto().randomUUIDv7(),
  uuid: () => crypto.randomUUID(),
};

let loaded: typeof NodeCrypto | null = null;
function nodeCrypto(): typeof NodeCrypto {
  return (loaded ??= process.getBuiltinModule("node:crypto"));
}

/** 256 bits that cannot be guessed, as text for a file or a variable. Not of `Random`: no test may want it repeatable. */
export function newSecret(): string {
  return nodeCrypto().randomBytes(32).toString("base64url");
}
