/** Short cuts that the promises about dispatch and ownership are written in. */

import assert from "node:assert/strict";
import type { NodeIdentity } from "../../../src/core/node.ts";
import type {
  Accepted,
  AcceptRequest,
  AssignmentId,
  DispatchedAssignment,
  DispatchedJob,
  DispatchRequest,
  Held,
  OwnershipStore,
} from "../../../src/store/ownership.ts";
import { dispatchRequest as anyDispatch } from "../../support/job-builders.ts";
import type { NewJob, Outcome, Recorded, Run, RunBatch, Verdict } from "../../../src/store/store.ts";
import { AUTHOR, HOUR_MS, lease, LEASE_MS, NODE, node, type StoreWorld } from "../../support/store-world.ts";

export const A: NodeIdentity = { name: node("node-a"), incarnation: "a-1" };
export const B: NodeIdentity = { name: node("node-b"), incarnation: "b-1" };

export const COMPLETED: Outcome = { kind: "completed", result: "null" };

/** A run that was accepted, and what it was dispatched in. */
export interface OwnedRun extends Run {
  readonly assignment: AssignmentId;
}

export function ownershipOf({ store }: StoreWorld): OwnershipStore {
  assert.ok(store.ownership, "the store keeps no ownership");
  return store.ownership;
}

export function dispatchRequest(fields: Partial<DispatchRequest> = {}): DispatchRequest {
  return anyDispatch({ limit: 100, size: 20, suspect: false, ...fields });
}

export async function dispatched(
  world: StoreWorld,
  fields: Partial<DispatchRequest> = {},
): Promise<readonly DispatchedAssignment[]> {
  const { assignments } = await ownershipOf(world).dispatch(dispatchRequest(fields), await world.term());
  return assignments;
}

/** By queue, and without taking a mark off. */
export async function outstanding(world: StoreWorld): Promise<Record<string, number>> {
  const marked = await ownershipOf(world).undispatch(HOUR_MS, await world.term());
  return Object.fromEntries(marked.outstanding);
}

export function jobsOf(assignments: readonly DispatchedAssignment[]): DispatchedJob[] {
  return assignments.flatMap(({ jobs }) => jobs);
}

/** What a worker asks for when the messages of these assignments have come. */
export function wanted(
  assignments: readonly DispatchedAssignment[],
  fields: Partial<AcceptRequest> = {},
): AcceptRequest {
  return {
    author: AUTHOR,
    worker: NODE,
    lease: lease("node-a/1"),
    leaseMs: LEASE_MS,
    opens: true,
    runs: assignments.flatMap(({ id, jobs }) =>
      jobs.map((job) => ({ id: job.id, jobEpoch: job.jobEpoch, ref: job.ref, assignment: id })),
    ),
    ...fields,
  };
}

export function accept(
  world: StoreWorld,
  assignments: readonly DispatchedAssignment[],
  fields: Partial<AcceptRequest> = {},
): Promise<Accepted> {
  return ownershipOf(world).accept(wanted(assignments, fields));
}

/** Jobs that were dispatched together and run, in an assignment that the node owns. */
export async function owned(
  world: StoreWorld,
  count = 1,
  { owner = A, job = {} }: { readonly owner?: NodeIdentity; readonly job?: Partial<NewJob> } = {},
): Promise<{ readonly held: Held; readonly runs: readonly OwnedRun[] }> {
  await world.submitMany(count, job);
  const assignments = await dispatched(world, { size: count, limit: count });
  assert.equal(assignments.length, 1);
  const request = wanted(assignments);
  const { accepted } = await ownershipOf(world).accept(request);
  assert.deepEqual(
    accepted,
    request.runs.map(() => true),
  );
  const assignment = assignments[0]!.id;
  const [ownerEpoch] = await ownershipOf(world).own([{ assignment, ownerEpoch: 0 }], owner);
  assert.equal(ownerEpoch, 1);
  return {
    held: { assignment, ownerEpoch },
    runs: request.runs.map((run) => ({ ...run, lease: request.lease })),
  };
}

/** One settlement, written by its owner. Null: it is not its owner. */
export async function settleOwned(
  world: StoreWorld,
  held: Held,
  run: Run,
  outcome: Outcome = COMPLETED,
  owner: NodeIdentity = A,
): Promise<Verdict | null> {
  const answer = await writeOwned(world, held, { settlements: [{ run, outcome }] }, owner);
  return answer ? answer.settled[0]! : null;
}

export async function writeOwned(
  world: StoreWorld,
  held: Held,
  said: Partial<RunBatch>,
  owner: NodeIdentity = A,
): Promise<Recorded | null> {
  const answers = await ownershipOf(world).record(
    [{ ...held, reports: [], settlements: [], ...said }],
    owner,
  );
  assert.equal(answers.length, 1);
  return answers[0]!;
}

/** How many jobs of each still run or wait for a worker; 0 for one that is gone. */
export async function unfinished(world: StoreWorld, ids: readonly AssignmentId[]): Promise<number[]> {
  const found = await ownershipOf(world).read(ids, true);
  return found.map((each) => each?.unfinished ?? 0);
}
