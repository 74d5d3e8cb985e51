import assert from "node:assert/strict";
import type { LeaseLock } from "../../src/leadership/coordination.ts";
import type { NodeName } from "../../src/core/ids.ts";
import type { NodeIdentity, OwnInfo } from "../../src/core/node.ts";
import type { Term } from "../../src/core/leadership/term.ts";

export const OWN_INFO: OwnInfo = {
  url: "http://10.0.0.7:4000",
  hostname: "host",
  address: "10.0.0.7",
  httpPort: 4000,
  roles: ["worker"],
  capabilities: ["hello"],
  version: "1.2.3",
  startedAt: 5,
  load: { jobs: 1, connections: 2, cpu: 0.25, memory: 0.75, loopLagMs: 3 },
};

export function candidate(name: string, incarnation = `${name}/1`): NodeIdentity {
  return { name: name as NodeName, incarnation };
}

/** A grant that the proof cannot go on without. */
export async function granted(lock: LeaseLock, who: NodeIdentity, ttlMs: number): Promise<Term> {
  const term = await lock.acquire(who, ttlMs);
  assert.ok(term, `${who.name} was not granted a free lock`);
  return term;
}
