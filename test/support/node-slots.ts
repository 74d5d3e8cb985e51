/** Slots on the memory store: a test puts jobs there, and decides whether the worker hears of them. */

import assert from "node:assert/strict";
import type { LeaseId } from "../../src/core/ids.ts";
import type { ClaimedJob, Run, Slot, SlotRequest, SlotStore } from "../../src/store/store.ts";
import type { SubmitRequest } from "../../src/jobs/submit/submitter.ts";
import { BatonError } from "../../src/core/errors.ts";
import { claimRequest } from "./job-builders.ts";
import type { WorkerWorld } from "./node-worker.ts";

export class FakeSlots implements SlotStore {
  /** Under which a slot is open. */
  lease: LeaseId | null = null;
  readonly calls: ("open" | "close")[] = [];
  /** Calls fail without having done anything. */
  failing = false;
  /** Answers wait for it. */
  held: Promise<void> | null = null;
  holds = true;
  #request: SlotRequest | null = null;
  #jobs: ClaimedJob[] = [];

  async open(request: SlotRequest, known: readonly Run[]): Promise<Slot> {
    this.#begin("open");
    if (!this.holds) return { opened: false, held: false, jobs: [] };
    this.#request = request;
    this.lease = request.lease;
    return { opened: true, held: true, jobs: await this.#unknown(known) };
  }

  async close(lease: LeaseId, known: readonly Run[]): Promise<readonly ClaimedJob[]> {
    this.#begin("close");
    if (lease === this.lease) this.lease = null;
    return this.#unknown(known);
  }

  /** A job as a submit puts it into the slot: it runs in the store, and nobody has told the worker. */
  async put(world: WorkerWorld, task: string, fields: Partial<SubmitRequest> = {}): Promise<ClaimedJob> {
    assert.ok(this.lease, "no slot is open");
    const { store } = world;
    const { author, worker, lease, leaseMs } = this.#request!;
    const [submitted] = await world.submitter.submit([{ task, ...fields }]);
    const claim = { author, worker, lease, leaseMs, limit: 1, tasks: new Set([task]) };
    const [job] = (await store.jobs.claim(claimRequest(claim))).jobs;
    assert.equal(job?.id, submitted!.id);
    this.#jobs.push(job);
    return job;
  }

  async read(_lease: LeaseId, refs: readonly unknown[]): Promise<readonly ClaimedJob[]> {
    const jobs = this.#jobs.filter(({ ref }) => refs.includes(ref));
    await this.held;
    return jobs;
  }

  #begin(call: "open" | "close"): void {
    this.calls.push(call);
    if (this.failing) throw new BatonError("STORE_UNAVAILABLE", `${call} is refused for now`);
  }

  async #unknown(known: readonly Run[]): Promise<ClaimedJob[]> {
    const jobs = this.#jobs.filter(({ id }) => !known.some((run) => run.id === id));
    await this.held;
    return jobs;
  }

  /** As a store, which no longer shows runs that were settled. */
  forget({ id }: Run): void {
    this.#jobs = this.#jobs.filter((job) => job.id !== id);
  }
}
