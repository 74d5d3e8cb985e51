import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EventLog } from "../../../src/controller/event-log.ts";
import type { Role } from "../../../src/core/role.ts";
import { ManualClock } from "../../../src/platform/manual-clock.ts";

function open() {
  const clock = new ManualClock();
  const standing = { role: "STANDBY" as Role, epoch: 7 as number | null, leader: "b" as string | null };
  const log = new EventLog({ node: "a", clock, standing: () => ({ ...standing }) });
  return { clock, standing, log };
}

/** As many as are asked for. */
async function take(log: EventLog, since: string | null, count: number): Promise<any[]> {
  const stop = new AbortController();
  const taken = [];
  for await (const event of log.follow(since, stop.signal)) {
    taken.push(event);
    if (taken.length === count) break;
  }
  return taken;
}

describe("the log of events", () => {
  it("numbers events under the epoch, and gives out what was missed", async () => {
    const { log, standing } = open();
    log.emit("job.leased", { job_id: "x" });
    standing.epoch = 8;
    log.emit("job.completed", { job_id: "x" });
    const events = await take(log, "7-1", 2);
    assert.deepEqual(
      events.map(({ event, id }) => [event, id]),
      [
        ["hello", undefined],
        ["job.completed", "8-2"],
      ],
    );
  });

  it("tells a gap when what was missed is not kept, and goes on with what is", async () => {
    const { log } = open();
    for (let n = 0; n < 6_000; n++) log.emit("job.leased", { n });
    const events = await take(log, "7-10", 3);
    assert.deepEqual(
      events.map(({ event, id }) => [event, id]),
      [
        ["hello", undefined],
        ["gap", undefined],
        ["job.leased", "7-1001"],
      ],
    );
    assert.equal((await take(log, "7-5999", 2))[1].id, "7-6000");
    assert.equal((await take(log, "6-5999", 2))[1].event, "gap", "the number of another term");
  });

  it("cuts off a reader that does not keep up, and says so", async () => {
    const { log } = open();
    const stop = new AbortController();
    const events = log.follow(null, stop.signal);
    await events.next();
    for (let n = 0; n < 5_010; n++) log.emit("job.leased", { n });
    const gap = (await events.next()).value!;
    assert.deepEqual([gap.event, gap.data.since, gap.data.next], ["gap", "7-1", "7-5001"]);
    assert.equal((await events.next()).value!.id, "7-5001");
    await events.return(undefined);
    assert.equal(log.readers, 0);
  });

  it("tells a change of role and of leader while somebody reads, and sets no timer otherwise", async () => {
    const { log, clock, standing } = open();
    assert.equal(clock.waiting, 0);
    const stop = new AbortController();
    const events = log.follow(null, stop.signal);
    await events.next();
    Object.assign(standing, { role: "LEADER", epoch: 9, leader: "a" });
    await clock.advance(300);
    const changes = [(await events.next()).value!, (await events.next()).value!];
    assert.deepEqual(
      changes.map(({ event, id }) => [event, id]),
      [
        ["leader.changed", "9-1"],
        ["role.changed", "9-2"],
      ],
    );
    const ended = events.next();
    stop.abort();
    assert.equal((await ended).done, true);
    assert.equal(clock.waiting, 0);
  });
});
