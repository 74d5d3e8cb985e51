import assert from "node:assert/strict";
import { appendFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { requestDelay } from "../../../../src/api/execute.ts";
import type { JobView } from "../../../../src/jobs/job-service.ts";
import { RoundRobinPosition } from "../../../../src/peers/placement/round-robin-position.ts";
import { PeerClient } from "../../../../src/peers/rpc/peer-rpc.ts";
import { RetractionFile } from "../../../../src/peers/retractions/retraction-file.ts";
import { Retractions, type RetractableJobs } from "../../../../src/peers/retractions/retractions.ts";
import type { JobId, NodeName } from "../../../../src/core/ids.ts";
import type { JobStatus } from "../../../../src/core/jobs/job.ts";
import { systemClock } from "../../../../src/platform/clock.ts";
import { systemFiles, type Files } from "../../../../src/platform/files.ts";
import { SYSTEM } from "../../../../src/platform/platform.ts";
import { fakePlatform, MemoryFiles } from "../../../support/fake-platform.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { seededRandom } from "../../../support/seeded-random.ts";
import { lifecycleStress } from "../../../support/lifecycle-stress.ts";
import { keptLog } from "../../http/fake-node.ts";

const NOBODY = new PeerClient(() => Promise.reject(new Error("there is no node to call")));

let dir: string;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), "baton-placement-"));
});
after(() => rm(dir, { recursive: true, force: true }));

describe("the position of a round", () => {
  const clock = new ManualClock();
  async function open(file: string | null, seed = 1) {
    const log = keptLog();
    const platform = fakePlatform({ clock, random: seededRandom(seed), log, files: systemFiles });
    const position = new RoundRobinPosition(platform, file);
    await position.start();
    return { position, log, [Symbol.asyncDispose]: () => position.stop() };
  }

  it("goes on after a restart where it was, out of a file that a person can read", async () => {
    const file = join(dir, "sub", "rr.json");
    const first = await open(file);
    const began = first.position.next();
    assert.equal(first.position.next(10), began + 1);
    await first.position.stop();
    assert.deepEqual(JSON.parse(await readFile(file, "utf8")), { index: began + 11 });
    await using second = await open(file, 2);
    assert.equal(second.position.next(), began + 11);
    assert.deepEqual(second.log.lines, []);
  });

  it("is taken from a file that somebody else left", async () => {
    const file = join(dir, "theirs.json");
    await writeFile(file, '{"index": 2}');
    await using opened = await open(file);
    assert.equal(opened.position.next(), 2);
  });

  it("is written behind, not for each job", async () => {
    const file = join(dir, "behind.json");
    await writeFile(file, '{"index": 0}');
    await using opened = await open(file);
    for (let i = 0; i < 100; i++) opened.position.next();
    assert.equal(await readFile(file, "utf8"), '{"index": 0}');
    await clock.advance(1_000);
    const deadline = Date.now() + 5_000;
    while ((await readFile(file, "utf8")) === '{"index": 0}') assert.ok(Date.now() < deadline);
    assert.deepEqual(JSON.parse(await readFile(file, "utf8")), { index: 100 });
  });

  it("S91: starts anywhere when its file is missing, corrupt or not to be written, with one warning if it is there, and goes on", async () => {
    const folder = join(dir, "a-folder");
    await mkdir(folder);
    const cases: Record<string, string | null> = { missing: null, folder: null };
    for (const [name, text] of Object.entries({
      empty: "",
      torn: '{"ind',
      text: '{"index":"3"}',
      negative: '{"index":-1}',
      fraction: '{"index":1.5}',
      huge: '{"index":1e300}',
      nothing: "null",
      list: "[1]",
    })) {
      cases[name] = text;
      await writeFile(join(dir, `${name}.json`), text);
    }
    const starts = new Set<number>();
    let seed = 1;
    for (const name of Object.keys(cases)) {
      const file = name === "folder" ? folder : join(dir, `${name}.json`);
      const { position, log } = await open(file, seed++);
      const began = position.next();
      assert.equal(position.next(), began + 1, name);
      await position.stop();
      // The first start of a node is no mistake.
      assert.equal(log.lines.length, name === "missing" ? 0 : 1, `${name}: ${JSON.stringify(log.lines)}`);
      starts.add(began);
    }
    assert.ok(starts.size > 5, "not all at the same position");
  });

  it("follows what others gave out, and never goes back", async () => {
    await using opened = await open(null);
    const began = opened.position.next();
    opened.position.follow(began + 50);
    opened.position.follow(began + 20);
    assert.equal(opened.position.next(), began + 50);
  });
});

describe("notes of what is to be taken back", () => {
  const note = (n: number) => ({
    node: "node-b" as NodeName,
    first: `0198c0de-0000-7000-8000-${String(n).padStart(12, "0")}`,
    jobs: 1,
    at: n,
  });

  it("survive a restart, also one in the middle of a line, until they are done", async () => {
    const file = join(dir, "notes");
    const log = keptLog();
    const first = new RetractionFile({ ...SYSTEM, log }, file);
    await first.start();
    await Promise.all([1, 2, 3].map((n) => first.add(note(n))));
    await first.done(note(2).first);
    await first.stop();
    await appendFile(file, '{"add":{"node":"node-b","fir');
    const second = new RetractionFile({ ...SYSTEM, log }, file);
    await second.start();
    assert.deepEqual(second.pending(), [note(1), note(3)]);
    assert.equal(log.lines.length, 1, "the torn line is told");
    await second.add(note(4));
    await second.stop();
    await assert.rejects(second.add(note(5)), /not open/);
    const third = new RetractionFile({ ...SYSTEM, log }, file);
    await third.start();
    assert.deepEqual(third.pending(), [note(1), note(3), note(4)]);
    await third.stop();
  });

  it("stand with the promises that others must not break, which end when no note can be so old", async () => {
    const platform = fakePlatform();
    const notes = new RetractionFile(platform, "notes");
    await notes.start();
    const id = (n: number) => `node-a-${note(n).first}` as JobId;
    await notes.confirm(id(0));
    await platform.clock.advance(29 * 86_400_000);
    for (let n = 1; n <= 2_500; n++) await notes.confirm(id(n));
    assert.equal(notes.confirmed(id(0)), true);
    await platform.clock.advance(2 * 86_400_000);
    for (let n = 2_501; n <= 6_500; n++) await notes.confirm(id(n));
    assert.equal(notes.confirmed(id(0)), false, "also without a restart");
    const again = new RetractionFile(platform, "notes");
    await again.start();
    for (const n of [1, 2_500, 6_500]) assert.equal(again.confirmed(id(n)), true, String(n));
  });

  it("do not let their file grow for ever", async () => {
    const files = new MemoryFiles();
    const notes = new RetractionFile(fakePlatform({ files }), "notes");
    await notes.start();
    await notes.add(note(0));
    for (let n = 1; n <= 1_200; n++) {
      await notes.add(note(n));
      await notes.done(note(n).first);
    }
    await notes.stop();
    assert.ok(files.texts.get("notes")!.split("\n").length < 2_500);
    const again = new RetractionFile(fakePlatform({ files }), "notes");
    await again.start();
    assert.deepEqual(again.pending(), [note(0)]);
    await again.stop();
  });
});

describe("how late a request is", () => {
  it("is what its way took beyond the usual, whatever the clocks of both say", async () => {
    const clock = new ManualClock();
    const lateBy = requestDelay(clock);
    const skewMs = -3_600_000;
    const arrive = (tookMs: number): number => lateBy("node-b", clock.now() + skewMs - tookMs);
    assert.equal(arrive(5), 0, "of the first nothing is known");
    assert.equal(arrive(3), 0);
    assert.equal(arrive(10), 7);
    assert.equal(lateBy("node-c", clock.now()), 0, "each sender has a clock of its own");
    // This process stood still for an hour: what waited meanwhile is late by that.
    await clock.advance(3_600_000);
    assert.equal(arrive(3_600_003), 3_600_000);
    assert.equal(arrive(3), 0);
  });

  it("gets over a clock that was set", async () => {
    const clock = new ManualClock();
    const lateBy = requestDelay(clock);
    lateBy("node-b", clock.now());
    const setBack = (): number => lateBy("node-b", clock.now() - 10_000);
    assert.equal(setBack(), 10_000);
    await clock.advance(61_000);
    setBack();
    await clock.advance(61_000);
    assert.equal(setBack(), 0);
  });
});

describe("a job that was placed elsewhere as well", () => {
  const first = "0198c0de-0000-7000-8000-000000000000";
  const id = `node-a-${first}` as JobId;

  /** A life of the node on these files; it is killed, not stopped. */
  async function here(status: JobStatus, files: Files = new MemoryFiles()) {
    const removed: JobId[] = [];
    const gate = { open: Promise.resolve() };
    const jobs: RetractableJobs = {
      get: async () => ({ status }) as JobView,
      cancel: async () => ({ outcome: "requested" }),
      remove: async (each) => {
        await gate.open;
        removed.push(each);
        return "removed";
      },
    };
    const log = keptLog();
    const platform = fakePlatform({ name: "node-a", log, files });
    const notes = new RetractionFile(platform, "notes");
    await notes.start();
    const retracted = new Retractions(platform, notes, NOBODY, () => [], jobs);
    return { retracted, removed, log, gate };
  }

  it("is removed although it has run, which the log tells: its twin is the one that its caller knows", async () => {
    const { retracted, removed, log } = await here("completed");
    assert.equal(await retracted.takeBack(first, 1), "gone");
    assert.deepEqual(removed, [id]);
    assert.equal(await retracted.store(first, () => assert.fail("it is not stored again")), null);
    assert.match(JSON.stringify(log.lines), /has run here too/);
  });

  it("is removed after the writes of it that are under way", async () => {
    const { retracted, removed } = await here("queued");
    const writes = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
    const stored = writes.map(({ promise }) => retracted.store(first, () => promise));
    const taking = retracted.takeBack(first, 1);
    writes[1]!.reject(new Error("the disk is full"));
    await assert.rejects(stored[1]!, /the disk is full/);
    assert.deepEqual(removed, [], "the other write may still end well");
    writes[0]!.resolve("stored");
    assert.deepEqual([await stored[0], await taking, removed], [null, "gone", [id]]);
  });

  it("stays when another caller was answered with it, also after the node was killed", async () => {
    const files = new MemoryFiles();
    const { retracted } = await here("queued", files);
    await Promise.all([retracted.confirm(id), retracted.confirm(id)]);
    const written = files.texts.get("notes");
    await retracted.confirm(id);
    assert.equal(files.texts.get("notes"), written, "once is enough");
    for (const life of ["second", "third"]) {
      const next = await here("queued", files);
      assert.equal(await next.retracted.takeBack(first, 1), "kept", life);
      assert.deepEqual(next.removed, []);
    }
  });

  it("is not promised to another caller while it is being removed, or afterwards", async () => {
    const { retracted, removed, gate } = await here("queued");
    const { promise, resolve } = Promise.withResolvers<void>();
    gate.open = promise;
    const taking = retracted.takeBack(first, 1);
    await assert.rejects(retracted.confirm(id), { code: "STORE_UNAVAILABLE" });
    resolve();
    assert.equal(await taking, "gone");
    await assert.rejects(retracted.confirm(id), { code: "STORE_UNAVAILABLE" });
    assert.deepEqual(removed, [id]);
  });

  it("goes when it is taken back before the promise is on disk, which is then not made", async () => {
    const files = new MemoryFiles();
    const { retracted, removed } = await here("queued", files);
    const promised = assert.rejects(retracted.confirm(id), { code: "STORE_UNAVAILABLE" });
    assert.equal(await retracted.takeBack(first, 1), "gone");
    await promised;
    assert.equal(await retracted.takeBack(first, 1), "gone", "asked again, it is decided");
    assert.deepEqual(removed, [id, id]);
  });

  it("is not promised when that cannot be written", async () => {
    const files = new MemoryFiles();
    files.append = async () => ({
      add: () => Promise.reject(new Error("no space left on device")),
      close: async () => {},
    });
    const { retracted } = await here("queued", files);
    for (const _ of [1, 2]) await assert.rejects(retracted.confirm(id), { code: "STORE_UNAVAILABLE" });
    assert.equal(await retracted.takeBack(first, 1), "gone");
  });
});

lifecycleStress("position of a round", async () => {
  const file = join(await mkdtemp(join(tmpdir(), "baton-position-")), "rr.json");
  const log = keptLog();
  const service = new RoundRobinPosition(fakePlatform({ clock: systemClock, log, files: systemFiles }), file);
  return {
    service,
    works: async () => assert.equal(service.next() + 1, service.next()),
    close: async () => {
      await service.stop();
      await rm(dirname(file), { recursive: true });
    },
  };
});

lifecycleStress("retractions", async () => {
  const folder = await mkdtemp(join(tmpdir(), "baton-retractions-"));
  let noted = 0;
  const platform = fakePlatform({ name: "node-a", clock: systemClock, files: systemFiles });
  const notes = new RetractionFile(platform, join(folder, "notes"));
  await notes.start();
  const jobs: RetractableJobs = {
    get: async () => null,
    cancel: async () => ({ outcome: "requested" }),
    remove: async () => "removed",
  };
  const service = new Retractions(platform, notes, NOBODY, () => [], jobs);
  return {
    service,
    works: async () => {
      const first = `0198c0de-0000-7000-8000-${String(++noted).padStart(12, "0")}`;
      await service.note("node-b" as NodeName, first, 1);
      assert.equal(service.size, noted);
    },
    close: async () => {
      await service.stop();
      await notes.stop();
      await rm(folder, { recursive: true });
    },
  };
});
