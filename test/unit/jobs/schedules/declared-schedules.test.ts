import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NO_LOAD, type NodeInfo } from "../../../../src/core/node.ts";
import { DeclarationWriter } from "../../../../src/jobs/schedules/declaration-writer.ts";
import { DeclaredSchedules } from "../../../../src/jobs/schedules/declared-schedules.ts";
import { RunningVersions } from "../../../../src/jobs/schedules/running-versions.ts";
import { declarations, type CodeSchedule } from "../../../../src/jobs/schedules/schedule-declarations.ts";
import { originOf } from "../../../../src/jobs/schedules/schedule-origin.ts";
import { scheduleService } from "../../../../src/jobs/schedules/schedule-service.ts";
import { TaskRegistry } from "../../../../src/jobs/tasks/task-registry.ts";
import { fakePlatform } from "../../../support/fake-platform.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { nodeInfo } from "../../../support/job-builders.ts";
import { memoryStore } from "../../../support/memory-store.ts";
import { recordingLog } from "../../../support/node-log.ts";
import { seededRandom } from "../../../support/seeded-random.ts";

const START = Date.UTC(2026, 0, 1);
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

type Code = Partial<CodeSchedule> & { readonly name: string };

/** Nodes of one cluster over one store, each with the schedules of its code. */
class Cluster {
  readonly log = recordingLog();
  readonly clock = new ManualClock(START);
  readonly platform = fakePlatform({ clock: this.clock, random: seededRandom(3), log: this.log });
  readonly #store = memoryStore({ clock: this.clock });
  readonly #nodes = new Map<string, { readonly info: NodeInfo; readonly service: DeclaredSchedules }>();
  readonly changed: string[] = [];
  readonly schedules = this.#store.schedules;
  readonly operator = scheduleService(this.platform, {
    store: this.#store,
    channels: { publish: async () => {} },
    maxAttempts: 5,
    submit: async () => [],
  });
  /** In the middle of a write of a node. */
  beforeRevise: () => Promise<void> = async () => {};
  #leader = "";

  static async with(body: (cluster: Cluster) => Promise<void>): Promise<void> {
    const cluster = new Cluster();
    try {
      await body(cluster);
    } finally {
      for (const name of cluster.#nodes.keys()) await cluster.stop(name);
      await cluster.#store.close();
    }
  }

  /** A node with these schedules and tasks in its code; the first one leads. */
  async start(name: string, code: readonly Code[], tasks = ["work"]): Promise<void> {
    const registry = new TaskRegistry(tasks.map((task) => ({ name: task, run: () => null })));
    const given = code.map((one) => {
      const timing = one.cron === undefined && one.every === undefined ? { every: "1h" as const } : {};
      return { task: "work", ...timing, ...one };
    });
    const declared = await declarations(registry, given, { maxAttempts: 5, timeoutMs: null });
    const info = nodeInfo(name, {
      capabilities: tasks,
      alive: true,
      load: { ...NO_LOAD, ...(declared.version !== null && { declares: declared.version }) },
    });
    this.#leader ||= name;
    const nodes = (): readonly NodeInfo[] => [...this.#nodes.values()].map((node) => node.info);
    const schedules = {
      ...this.schedules,
      revise: async (...call: Parameters<typeof this.schedules.revise>) => {
        await this.beforeRevise();
        return this.schedules.revise(...call);
      },
    };
    const writer = new DeclarationWriter(this.platform, {
      schedules,
      versions: new RunningVersions(this.clock, { nodes, alone: false }),
      onChanged: async (schedule) => void this.changed.push(schedule),
    });
    const service = new DeclaredSchedules(this.platform, {
      declarations: declared,
      writer,
      declare: (version, open) => writer.take(version, open),
      leads: () => this.#leader === name,
      alone: false,
    });
    this.#nodes.set(name, { info, service });
    await service.start();
    await this.clock.advance(0);
  }

  async stop(name: string): Promise<void> {
    const node = this.#nodes.get(name)!;
    this.#nodes.delete(name);
    await node.service.stop();
    if (this.#leader === name) this.#leader = [...this.#nodes.keys()][0] ?? "";
  }

  async restart(name: string, code: readonly Code[], tasks?: string[]): Promise<void> {
    await this.stop(name);
    await this.clock.advance(5_000);
    await this.start(name, code, tasks);
  }

  /** `name: payload`, with what is special about it. */
  async stored(): Promise<string[]> {
    return (await this.schedules.list()).map((schedule) => {
      const { origin } = originOf(schedule);
      const state = [schedule.paused ? "paused" : null, origin === "code" ? null : origin];
      return [`${schedule.name}: ${schedule.payload}`, ...state.filter((one) => one !== null)].join(", ");
    });
  }

  put(name: string, payload: unknown) {
    return this.operator.put({ name, task: "work", everyMs: HOUR_MS, payload });
  }
}

function inCluster(name: string, body: (cluster: Cluster) => Promise<void>): void {
  void it(name, () => Cluster.with(body));
}

const tick = (payload: unknown): Code => ({ name: "tick", payload });

describe("schedules that the code of nodes declares", () => {
  inCluster(
    "are stored once, however many nodes declare them, and are due by their timing",
    async (cluster) => {
      for (const name of ["a", "b", "c"])
        await cluster.start(name, [tick(1), { name: "tock", cron: "0 3 * * *" }]);
      assert.deepEqual(await cluster.stored(), ["tick: 1", "tock: null"]);
      const [first, second] = await cluster.schedules.list();
      assert.deepEqual([first!.nextAt, second!.nextAt], [START + HOUR_MS, START + 3 * HOUR_MS]);
      assert.deepEqual(cluster.changed, ["tick", "tock"], "the leader hears of each once");
      await cluster.clock.advance(10 * MINUTE_MS);
      assert.deepEqual(cluster.changed, ["tick", "tock"], "nothing is written again");
    },
  );

  inCluster(
    "are those of the newer version from its first node on, whatever older ones do",
    async (cluster) => {
      const [older, newer] = [
        [tick("old"), { name: "gone" }],
        [tick("new"), { name: "added" }],
      ];
      for (const name of ["a", "b", "c"]) await cluster.start(name, older);
      await cluster.restart("a", newer);
      const after = ["added: null", "gone: null", 'tick: "new"'];
      assert.deepEqual(await cluster.stored(), after);
      await cluster.restart("b", older);
      await cluster.clock.advance(10 * MINUTE_MS);
      assert.deepEqual(await cluster.stored(), after, "an old node that restarts changes nothing");
      await cluster.restart("b", newer);
      await cluster.clock.advance(10 * MINUTE_MS);
      assert.deepEqual(await cluster.stored(), after, "one node still has it");
      await cluster.restart("c", newer);
      await cluster.clock.advance(2 * MINUTE_MS);
      assert.deepEqual(await cluster.stored(), ["added: null", "gone: null, paused, dropped", 'tick: "new"']);
      const { note } = originOf((await cluster.schedules.get("gone"))!);
      assert.match(note!, /^paused at 2026-01-01T00:2\d.*: the code declares this schedule no longer/);
    },
  );

  inCluster(
    "are those of the old version again after a roll back, once the newer has no node",
    async (cluster) => {
      const [older, newer] = [[tick("old")], [tick("new")]];
      for (const name of ["a", "b"]) await cluster.start(name, older);
      for (const name of ["a", "b"]) await cluster.restart(name, newer);
      await cluster.restart("a", older);
      await cluster.clock.advance(5 * MINUTE_MS);
      assert.deepEqual(await cluster.stored(), ['tick: "new"']);
      await cluster.restart("b", older);
      await cluster.clock.advance(2 * MINUTE_MS);
      assert.deepEqual(await cluster.stored(), ['tick: "old"']);
    },
  );

  inCluster("of a removed task are paused, and the note says so", async (cluster) => {
    await cluster.start("a", [{ name: "tick", task: "mail" }], ["mail", "work"]);
    await cluster.restart("a", [], ["work"]);
    await cluster.clock.advance(2 * MINUTE_MS);
    assert.deepEqual(await cluster.stored(), ["tick: null, paused, dropped"]);
    const { note } = originOf((await cluster.schedules.get("tick"))!);
    assert.match(note!, /task mail was removed: no running node knows it/);
    assert.equal(cluster.log.matching(/task mail was removed/).length, 1);
  });

  inCluster("come back when they are declared again, with what was missed meanwhile", async (cluster) => {
    await cluster.start("a", [tick(1)]);
    await cluster.start("b", []);
    await cluster.stop("a");
    await cluster.clock.advance(2 * MINUTE_MS);
    assert.deepEqual(await cluster.stored(), ["tick: 1, paused, dropped"]);
    await cluster.clock.advance(3 * HOUR_MS);
    await cluster.start("a", [tick(1)]);
    assert.deepEqual(await cluster.stored(), ["tick: 1"]);
    assert.equal((await cluster.schedules.get("tick"))!.nextAt, START + HOUR_MS, "due since then");
  });

  inCluster("stay while their nodes restart, and while no node has any task", async (cluster) => {
    await cluster.start("a", [tick(1)]);
    await cluster.start("b", []);
    await cluster.stop("a");
    await cluster.clock.advance(50_000);
    assert.deepEqual(await cluster.stored(), ["tick: 1"]);
    await cluster.start("a", [tick(1)]);
    await cluster.stop("b");
    await cluster.start("b", [], []);
    await cluster.stop("a");
    await cluster.clock.advance(HOUR_MS);
    assert.deepEqual(await cluster.stored(), ["tick: 1"]);
  });

  inCluster("of several applications do not disturb each other", async (cluster) => {
    await cluster.start("a", [tick(1)]);
    await cluster.start("b", [{ name: "tock", payload: 2 }]);
    await cluster.clock.advance(HOUR_MS);
    assert.deepEqual(await cluster.stored(), ["tick: 1", "tock: 2"]);
  });
});

describe("a declared schedule that a person has changed", () => {
  inCluster("stays as it is over restarts and deploys, and its nodes say so", async (cluster) => {
    await cluster.start("a", [tick(1)]);
    await cluster.put("tick", "mine");
    await cluster.restart("a", [tick(1)]);
    assert.deepEqual(await cluster.stored(), ['tick: "mine", changed']);
    await cluster.restart("a", [tick(2)]);
    await cluster.clock.advance(5 * MINUTE_MS);
    assert.deepEqual(await cluster.stored(), ['tick: "mine", changed']);
    assert.ok(cluster.log.matching(/changed by hand and stays so/).length > 0);
    await cluster.put("tick", 2);
    assert.deepEqual(await cluster.stored(), ["tick: 2"], "put back");
    await cluster.restart("a", [tick(3)]);
    assert.deepEqual(await cluster.stored(), ["tick: 3"]);
  });

  inCluster("goes back to the code when it is removed", async (cluster) => {
    await cluster.start("a", [tick(1)]);
    await cluster.put("tick", "mine");
    assert.equal(await cluster.operator.remove("tick"), true);
    await cluster.clock.advance(MINUTE_MS);
    assert.deepEqual(await cluster.stored(), ["tick: 1"]);
  });

  inCluster("is left alone when that happens at the same moment as a deploy", async (cluster) => {
    await cluster.start("a", [tick(1)]);
    let once = true;
    cluster.beforeRevise = async () => {
      if (once) await cluster.put("tick", "mine");
      once = false;
    };
    await cluster.restart("a", [tick(2)]);
    await cluster.clock.advance(5 * MINUTE_MS);
    assert.deepEqual(await cluster.stored(), ['tick: "mine", changed']);
  });

  inCluster(
    "that was put before any code declared it stays, and is taken over if it is the same",
    async (cluster) => {
      await cluster.put("tick", "mine");
      await cluster.put("tock", 2);
      await cluster.start("a", [tick(1), { name: "tock", payload: 2 }]);
      assert.deepEqual(await cluster.stored(), ['tick: "mine", changed', "tock: 2"]);
    },
  );

  inCluster("by a pause stays paused over deploys", async (cluster) => {
    await cluster.start("a", [tick(1)]);
    await cluster.operator.setPaused("tick", true);
    await cluster.restart("a", [tick(2)]);
    assert.deepEqual(await cluster.stored(), ["tick: 2, paused"]);
    assert.equal((await cluster.schedules.get("tick"))!.nextAt, null);
    await cluster.restart("a", []);
    await cluster.clock.advance(5 * MINUTE_MS);
    await cluster.restart("a", [tick(2)]);
    assert.deepEqual(await cluster.stored(), ["tick: 2, paused"]);
  });

  inCluster(
    "cannot be removed while it is as the code declares it, and can when no code does",
    async (cluster) => {
      await cluster.start("a", [tick(1)]);
      await assert.rejects(cluster.operator.remove("tick"), {
        code: "SCHEDULE_DECLARED",
        message: /declared in the code of nodes that run.*pause it/,
      });
      await cluster.restart("a", []);
      await cluster.clock.advance(2 * MINUTE_MS);
      assert.equal(await cluster.operator.remove("tick"), true);
      await cluster.clock.advance(2 * MINUTE_MS);
      assert.deepEqual(await cluster.stored(), []);
    },
  );

  inCluster("by resuming what no code declares any more is an ordinary one from then on", async (cluster) => {
    await cluster.start("a", [tick(1)]);
    await cluster.restart("a", []);
    await cluster.clock.advance(2 * MINUTE_MS);
    const resumed = await cluster.operator.setPaused("tick", false);
    assert.deepEqual([resumed!.paused, originOf(resumed!).origin], [false, "operator"]);
    assert.equal(resumed!.nextAt, START + HOUR_MS);
    await cluster.clock.advance(5 * MINUTE_MS);
    assert.deepEqual(await cluster.stored(), ["tick: 1, operator"]);
  });
});

describe("a mistake in a declaration", () => {
  const registry = new TaskRegistry([{ name: "work", run: () => null }]);
  const check = (...code: readonly object[]) =>
    declarations(registry, code as CodeSchedule[], { maxAttempts: 5, timeoutMs: null });
  const cases: [what: string, code: object, field: string, message: RegExp][] = [
    ["no timing", {}, "cron", /^schedule tick of task work: give exactly one of cron and every/],
    ["two timings", { cron: "* * * * *", every: "5m" }, "cron", /both are given/],
    ["an impossible date", { cron: "0 0 31 6 *" }, "cron", /no such date/],
    ["an unknown zone", { cron: "0 3 * * *", zone: "Berlin" }, "zone", /did you mean Europe\/Berlin/],
    ["an interval without a unit", { every: "5" }, "every", /schedule tick: every needs a unit/],
    ["an interval that is none", { every: true }, "every", /a duration such as "30s"/],
    ["an interval below a second", { every: "10ms" }, "every_ms", /from 1000/],
    ["an unknown field", { every: "5m", paylod: 1 }, "paylod", /is unknown; did you mean payload\?/],
    [
      "an unknown task",
      { every: "5m", task: "wrok" },
      "task",
      /"wrok" is not a task of this node; did you mean work/,
    ],
    ["a bad name", { every: "5m", name: "a b" }, "name", /1 to 128 letters/],
    ["a payload that is no JSON", { every: "5m", payload: { at: new Date() } }, "payload.at", /not a Date/],
    ["a bad policy", { every: "5m", missed: "twice" }, "missed", /one of skip, run_once, run_all/],
  ];
  for (const [what, code, field, message] of cases) {
    it(`is refused with the schedule and the field: ${what}`, async () => {
      await assert.rejects(check({ name: "tick", task: "work", ...code }), (error: any) => {
        assert.match(error.message, message);
        assert.equal(error.details.field, field);
        return true;
      });
    });
  }

  it("is refused: two schedules of one name, and what is no schedule", async () => {
    const one = { name: "tick", task: "work", every: "5m" };
    await assert.rejects(check(one, { ...one, every: "6m" }), { message: /tick: name is declared twice/ });
    await assert.rejects(check(null as unknown as object), {
      code: "BAD_SCHEDULE",
      message: /must be an object/,
    });
  });

  it("is told by the version: other schedules, other defaults, whatever the order", async () => {
    const [a, b] = [
      { name: "a", task: "work", every: "5m" },
      { name: "b", task: "work", every: "5m" },
    ] as const;
    const version = (await check(a, b)).version;
    assert.equal((await check(b, a)).version, version);
    assert.notEqual((await check(a)).version, version);
    assert.equal((await check()).version, null);
    const other = await declarations(registry, [a, b], { maxAttempts: 6, timeoutMs: null });
    assert.notEqual(other.version, version);
  });
});
