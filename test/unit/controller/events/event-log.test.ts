import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EventLog, type Happened } from "../../../../src/controller/events/event-log.ts";
import type { Role } from "../../../../src/core/leadership/role.ts";
import { fakePlatform } from "../../../support/fake-platform.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { columns } from "../../../support/columns.ts";

function open() {
  const clock = new ManualClock();
  const standing = { role: "STANDBY" as Role, epoch: 7 as number | null, leader: "b" as string | null };
  const leads = () => standing.role === "LEADER";
  const readers: number[] = [];
  const log = new EventLog(fakePlatform({ name: "a", clock }), {
    standing: () => ({ ...standing }),
    leads,
    onReaders: (count) => void readers.push(count),
  });
  return { clock, standing, log, readers };
}

function happened(count: number): Happened[] {
  return Array.from({ length: count }, (_, n) => ({ event: "job.leased", data: { n } }));
}

/** As many as are asked for, in short: the id, or the name of what has none. */
async function take(log: EventLog, since: string | null, count: number): Promise<string[]> {
  const taken = [];
  for await (const { id, event } of log.follow(since, new AbortController().signal)) {
    taken.push(id ?? event);
    if (taken.length === count) break;
  }
  return taken;
}

/** What is read while things happen. */
async function reading(log: EventLog, since: string | null = null) {
  const stop = new AbortController();
  const told: string[] = [];
  const events = log.follow(since, stop.signal);
  const hello = (await events.next()).value!;
  const over = (async () => {
    for await (const { id, event } of events) told.push(id ?? event);
  })();
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  await settle();
  return { told, hello, settle, stop: () => (stop.abort(), over) };
}

describe("the log of events", () => {
  it("gives out what was missed behind a number, and says in its greeting how far it is", async () => {
    const { log } = open();
    log.append(7, 1, happened(3));
    assert.deepEqual(await take(log, "7-1", 3), ["hello", "7-2", "7-3"]);
    const { hello, stop } = await reading(log);
    assert.equal((hello.data as { last_event_id: string }).last_event_id, "7-3");
    await stop();
  });

  it("tells a gap when what was missed is not kept, and goes on with what is", async () => {
    const { log } = open();
    log.append(7, 1, happened(6_000));
    assert.deepEqual(await take(log, "7-10", 3), ["hello", "gap", "7-1001"]);
    assert.deepEqual(await take(log, "7-5999", 2), ["hello", "7-6000"]);
    assert.deepEqual(await take(log, "6-5999", 3), ["hello", "gap", "7-1001"], "of another term");
    log.append(7, 6_001, happened(60_000));
    assert.deepEqual(await take(log, "7-1", 3), ["hello", "gap", "7-61001"]);
  });

  it("tells a gap where numbers are missing, to those who read and to those who come later", async () => {
    const { log } = open();
    log.append(7, 1, happened(2));
    const reader = await reading(log);
    log.append(7, 5, happened(1));
    log.append(8, 7, happened(1));
    log.append(8, 8, happened(1));
    await reader.settle();
    assert.deepEqual(reader.told, ["gap", "7-5", "gap", "8-7", "8-8"]);
    await reader.stop();
    assert.deepEqual(await take(log, "7-2", 6), ["hello", "gap", "7-5", "gap", "8-7", "8-8"]);
  });

  it("passes over what it knows already, and what an earlier leader still says", async () => {
    const { log } = open();
    const reader = await reading(log);
    log.append(7, 1, happened(3));
    log.append(7, 2, happened(4));
    log.append(7, 1, happened(2));
    log.append(6, 9, happened(2));
    await reader.settle();
    assert.deepEqual(reader.told, ["7-1", "7-2", "7-3", "7-4", "7-5"]);
    await reader.stop();
  });

  it("finds out from the numbers alone that the last events did not get here", async () => {
    const { log } = open();
    log.append(7, 1, happened(2));
    const reader = await reading(log);
    log.append(7, 3, []);
    await reader.settle();
    assert.deepEqual(reader.told, [], "as far as it is itself");
    log.append(7, 6, []);
    log.append(7, 6, happened(1));
    await reader.settle();
    assert.deepEqual(reader.told, ["gap", "7-6"], "once");
    await reader.stop();
  });

  it("does not tell a reader again what it saw at a node that was faster", async () => {
    const { log, standing } = open();
    log.append(7, 1, happened(2));
    const reader = await reading(log, "7-4");
    log.append(7, 3, happened(4));
    await reader.settle();
    assert.deepEqual(reader.told, ["7-5", "7-6"]);
    await reader.stop();
    assert.deepEqual(await take(log, "9-1", 2), ["hello", "gap"], "a term that nobody knows of");
    standing.role = "LEADER";
    assert.deepEqual(await take(log, "7-99", 2), ["hello", "gap"], "nobody is faster than the leader");
  });

  it("tells a gap to whoever resumes from before numbers that were left out", async () => {
    const { log } = open();
    log.append(7, 1, happened(1));
    log.skipTo({ epoch: 7, n: 2 });
    const reader = await reading(log);
    log.append(7, 3, happened(1));
    await reader.settle();
    assert.deepEqual(reader.told, ["7-3"]);
    await reader.stop();
    assert.deepEqual(await take(log, "7-1", 3), ["hello", "gap", "7-3"]);
    log.forget();
    assert.deepEqual(await take(log, "7-3", 2), ["hello", "gap"]);
  });

  it("cuts off a reader that does not keep up, and says so", async () => {
    const { log, readers } = open();
    const stop = new AbortController();
    const events = log.follow(null, stop.signal);
    await events.next();
    log.append(7, 1, happened(5_010));
    const gap = (await events.next()).value!;
    const { since, next } = gap.data as { since: string; next: string };
    assert.deepEqual([gap.event, since, next], ["gap", "7-1", "7-5001"]);
    assert.equal((await events.next()).value!.id, "7-5001");
    await events.return(undefined);
    assert.deepEqual(readers, [1, 0]);
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
      columns(changes, "event", "id"),
      [
        ["leader.changed", undefined],
        ["role.changed", undefined],
      ],
      "of this node alone: no number that another would know",
    );
    const ended = events.next();
    stop.abort();
    assert.equal((await ended).done, true);
    assert.equal(clock.waiting, 0);
  });
});
