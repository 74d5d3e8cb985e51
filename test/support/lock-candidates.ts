import assert from "node:assert/strict";
import type { LeaseLock } from "../../src/coordination/coordination.ts";
import type { NodeName } from "../../src/core/ids.ts";
import type { NodeIdentity } from "../../src/core/node.ts";
import type { Term } from "../../src/core/term.ts";

export function candidate(name: string, incarnation = `${name}/1`): NodeIdentity {
  return { name: name as NodeName, incarnation };
}

/** A grant that the proof cannot go on without. */
export async function granted(lock: LeaseLock, who: NodeIdentity, ttlMs: number): Promise<Term> {
  const term = await lock.acquire(who, ttlMs);
  assert.ok(term, `${who.name} was not granted a free lock`);
  return term;
}
