/**
 * The contract of the store port. Every keeper runs it; `broken.test.ts` shows that it bites.
 * No proof sleeps: the clock is moved by hand.
 */

import assert from "node:assert/strict";
import { type OpenStore, type Promises, StoreWorld } from "../../support/store-world.ts";
import { prove, type Skips } from "../promises.ts";
import { accessPromises, accessReopenPromises } from "./access.ts";
import { agentPromises } from "./agents.ts";
import { cancelAndRetryPromises } from "./cancel-and-retry.ts";
import { claimPromises } from "./claim.ts";
import { fencedWritePromises } from "./fenced-writes.ts";
import { firingPromises } from "./firing.ts";
import { idempotencyPromises } from "./idempotency.ts";
import { journalPromises } from "./journal.ts";
import { interruptionPromises } from "./interruptions.ts";
import { leaderWritePromises } from "./leader-writes.ts";
import { lifePromises } from "./life.ts";
import { listingPromises } from "./listing.ts";
import { modelPromises } from "./model.ts";
import { OWNERSHIP_SUBJECTS } from "./ownership.ts";
import { overduePromises } from "./overdue.ts";
import { pastRunPromises } from "./past-runs.ts";
import { queuePromises } from "./queues.ts";
import { recoverPromises } from "./recover.ts";
import { reopenPromises } from "./reopen.ts";
import { reportPromises } from "./report.ts";
import { schedulePromises } from "./schedules.ts";
import { settlePromises } from "./settle.ts";
import { submitPromises } from "./submit.ts";
import { samplePromises } from "./samples.ts";
import { termPromises } from "./terms.ts";
import { tracePromises } from "./traces.ts";

export const SUBJECTS: Readonly<Record<string, Promises>> = {
  submit: submitPromises,
  idempotency: idempotencyPromises,
  claim: claimPromises,
  settle: settlePromises,
  report: reportPromises,
  "cancel and retry": cancelAndRetryPromises,
  recover: recoverPromises,
  interruptions: interruptionPromises,
  overdue: overduePromises,
  listing: listingPromises,
  "past runs": pastRunPromises,
  queues: queuePromises,
  schedules: schedulePromises,
  firing: firingPromises,
  terms: termPromises,
  samples: samplePromises,
  agents: agentPromises,
  journal: journalPromises,
  access: accessPromises,
  "fenced writes": fencedWritePromises,
  "leader writes": leaderWritePromises,
  traces: tracePromises,
  life: lifePromises,
  model: modelPromises,
};

export interface ContractOptions {
  /** Whether closing and opening again on the same directory finds everything again. */
  readonly reopens?: boolean;
  /** Whether it keeps `ownership`. A keeper that only one process can open leaves it out. */
  readonly owns?: boolean;
}

export function storeContract(name: string, open: OpenStore, options: ContractOptions = {}): void {
  const { reopens = false, owns = false } = options;
  const ownership: Promises = {
    [`it ${owns ? "keeps" : "leaves out"} ownership, for push dispatch`]: async ({ store }) =>
      assert.equal(store.ownership !== undefined, owns),
  };
  proveOnStore(`the ${name} store`, open, {
    ...SUBJECTS,
    ...(reopens ? { reopen: reopenPromises, "access reopened": accessReopenPromises } : {}),
    ...(owns ? OWNERSHIP_SUBJECTS : {}),
    ownership,
  });
}

/** Each proof in a world of its own. Random histories take their time. */
export function proveOnStore(
  title: string,
  open: OpenStore,
  subjects: Readonly<Record<string, Promises>>,
  skip: Skips = {},
): void {
  for (const [subject, promises] of Object.entries(subjects))
    prove(`${title}: ${subject}`, promises, (proof) => StoreWorld.with(open, proof), skip, {
      timeoutMs: Infinity,
    });
}
