/** Writes at every controller all the time, whether it leads or not, and keeps book of what was accepted where. */

import assert from "node:assert/strict";
import { systemClock } from "../../src/platform/clock.ts";
import { Asking } from "./asking.ts";
import { ControllerCalls } from "./controller-calls.ts";
import type { Scope } from "./node-cleanup.ts";

interface Accepted {
  readonly name: string;
  readonly epoch: number;
  readonly sentAt: number;
  readonly answeredAt: number;
}

const PAUSE_MS = 20;
/** Longer than any pause here, so that what is sent to one that stands still is answered by it when it goes on. */
const DEADLINE_MS = 30_000;

export class ConformanceWriters {
  readonly accepted: Accepted[] = [];
  refusals = 0;
  readonly #asking: Asking;

  constructor(t: Scope, nodes: () => ReadonlyMap<string, { readonly url: string }>) {
    this.#asking = new Asking(t, PAUSE_MS, nodes, (name, node, over) => this.#write(name, node, over));
  }

  stop(): Promise<void> {
    return this.#asking.stop();
  }

  /** Under one epoch one controller writes and no other. */
  assertOneWriterPerEpoch(): void {
    const writers = new Map<number, string>();
    for (const { name, epoch } of this.accepted) {
      assert.equal(writers.get(epoch) ?? name, name, `two controllers wrote under epoch ${epoch}`);
      writers.set(epoch, name);
    }
  }

  /** What was sent after a write of a later term had been acknowledged was not accepted under an earlier one. */
  assertEpochsNeverFall(): void {
    const acknowledged = this.accepted.toSorted((a, b) => a.answeredAt - b.answeredAt);
    let next = 0;
    let highest = 0;
    for (const write of this.accepted.toSorted((a, b) => a.sentAt - b.sentAt)) {
      while (next < acknowledged.length && acknowledged[next]!.answeredAt < write.sentAt)
        highest = Math.max(highest, acknowledged[next++]!.epoch);
      const { name, epoch } = write;
      assert.ok(epoch >= highest, `${name} wrote under epoch ${epoch} after a write under ${highest}`);
    }
  }

  /** No answer is no acceptance that anybody knows of, and neither is one of a node that starts or has no store. */
  async #write(name: string, node: { readonly url: string }, over: AbortSignal): Promise<void> {
    const sentAt = systemClock.monotonic();
    const deadline = AbortSignal.any([AbortSignal.timeout(DEADLINE_MS), over]);
    const told = await new ControllerCalls(node)
      .call("POST", "/v1/jobs", { task: "nobody-does-this" }, deadline)
      .catch(() => null);
    if (told?.status === 200)
      this.accepted.push({
        name,
        epoch: told.body.leader_epoch,
        sentAt,
        answeredAt: systemClock.monotonic(),
      });
    else if (told?.status === 409) this.refusals++;
  }
}
