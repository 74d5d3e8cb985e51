import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import {
  ALERT_CODES,
  alertsOf,
  mergeAlerts,
  type Alert,
  type Facts,
} from "../../../../src/core/health/alerts.ts";
import type { NodeName } from "../../../../src/core/ids.ts";
import { quantiles, mixedQuantiles } from "../../../../src/core/health/quantiles.ts";

const NOW = 1_800_000_000_000;
const LOAD = { jobs: 0, connections: 0, cpu: 0, memory: 0, loopLagMs: 0, slots: 4 };

type Node = Facts["nodes"][number];

function node(name: string, over: Partial<Node> = {}): Node {
  const well = { status: "active", alive: true, lastSeenAt: NOW, version: "1.0.0", load: LOAD };
  return { name: name as NodeName, ...well, ...over };
}

const DEAD = node("b", { status: "dead", alive: false });
const UNREACHED = { reach: [{ node: "b", ok: false, latencyMs: null, reason: "refused" }] };

/** A node alone, or beside others, with this load. */
function loaded(load: Partial<Node["load"]>, ...others: Node[]): Pick<Facts, "nodes"> {
  return { nodes: [node("a", { load: { ...LOAD, ...load } }), ...others] };
}

function waiting(ageMs: number, paused = false): Pick<Facts, "waiting"> {
  return { waiting: [{ queue: "q", since: NOW - ageMs, paused }] };
}

const WELL: Facts = {
  now: NOW,
  formed: true,
  leader: "a",
  shared: true,
  nodes: [node("a"), node("b")],
  waiting: [{ queue: "mail", since: NOW - 1_000, paused: false }],
  ended: { of: 100, failed: 1 },
  late: [],
  refused: null,
  agents: 0,
  storeTrouble: null,
  oldestSnapshot: null,
};

const open = (ageMs: number) => ({ holder: "session 7", remedy: "SELECT pg_terminate_backend(7)", ageMs });

function codes(facts: Partial<Facts>): string[] {
  return alertsOf({ ...WELL, ...facts }).map(({ code, severity }) => `${code} ${severity}`);
}

describe("alerts", () => {
  it("are none where all is well", () => assert.deepEqual(codes({}), []));

  const cases: readonly [string, Partial<Facts>, string[]][] = [
    ["nobody leads", { leader: null }, ["no_leader critical"]],
    ["a cluster that gathers has no leader yet", { leader: null, formed: false }, []],
    ["a dead node", { nodes: [node("a"), DEAD] }, ["node_dead warning"]],
    ["a node that lags", loaded({ loopLagMs: 300 }), ["node_lagging warning"]],
    ["one that stands still", loaded({ loopLagMs: 5_000 }), ["node_lagging critical"]],
    ["two versions", { nodes: [node("a"), node("b", { version: "2.0.0" })] }, ["version_mix warning"]],
    [
      "a version of the dead",
      { nodes: [node("a"), node("b", { version: "2", alive: false, status: "draining" })] },
      [],
    ],
    ["an old backlog", waiting(600_000), ["backlog_old warning"]],
    ["a very old one", waiting(7_200_000), ["backlog_old critical"]],
    ["an old one that is paused", waiting(7_200_000, true), ["queue_paused warning"]],
    ["failures", { ended: { of: 10, failed: 3 } }, ["failures_rising warning"]],
    ["mostly failures", { ended: { of: 10, failed: 9 } }, ["failures_rising critical"]],
    ["a failure now and then", { ended: { of: 2, failed: 2 } }, []],
    ["a late schedule", { late: [{ schedule: "s", dueAt: NOW - 61_000 }] }, ["schedule_late warning"]],
    ["one that is due just now", { late: [{ schedule: "s", dueAt: NOW - 1_000 }] }, []],
    ["refused writes", { refused: { count: 2, lastAt: NOW } }, ["stale_writes warning"]],
    ["a store in trouble", { storeTrouble: "it is gone" }, ["store_degraded critical"]],
    ["a transaction that is open for a while", { oldestSnapshot: open(59_000) }, []],
    ["one that is open for long", { oldestSnapshot: open(60_000) }, ["old_snapshot warning"]],
    ["one that is open for very long", { oldestSnapshot: open(900_000) }, ["old_snapshot critical"]],
    ["no worker", loaded({ slots: 0 }), ["no_worker critical"]],
    ["no worker but agents", { ...loaded({ slots: 0 }), agents: 1 }, []],
    [
      "no worker for this queue",
      loaded({ serves: { queues: ["other"], except: [] } }),
      ["no_worker critical"],
    ],
    ["only drained workers", { nodes: [node("a", { status: "draining" })] }, ["no_worker critical"]],
    ["a node that others cannot reach", loaded(UNREACHED, node("b")), ["node_unreachable warning"]],
    ["a dead one that others cannot reach", loaded(UNREACHED, DEAD), ["node_dead warning"]],
  ];
  for (const [what, facts, expected] of cases) it(what, () => assert.deepEqual(codes(facts), expected));

  it("say of a dead node what becomes of its jobs", () => {
    const told = (shared: boolean) => alertsOf({ ...WELL, shared, nodes: [node("a"), DEAD] })[0]!.message;
    assert.match(told(true), /others have taken over/);
    assert.match(told(false), /wait until it is back/);
  });

  it("name the session that keeps dead rows, and what ends it", () => {
    const [{ message, remedy }] = alertsOf({ ...WELL, oldestSnapshot: open(120_000) }) as [Alert];
    assert.match(message, /open for 2 min.*session 7/);
    assert.match(remedy, /SELECT pg_terminate_backend\(7\)/);
  });

  it("of many nodes are a few, and tell how many more", () => {
    const nodes = Array.from({ length: 50 }, (_, n) => ({ ...DEAD, name: `n${n}` as NodeName }));
    const alerts = alertsOf({ ...WELL, waiting: [], nodes });
    assert.equal(alerts.length, 5);
    assert.ok(alerts.some(({ message }) => message.endsWith("and 45 more of the kind")));
  });

  const facts: fc.Arbitrary<Facts> = fc.record({
    now: fc.constant(NOW),
    formed: fc.boolean(),
    leader: fc.option(fc.constantFrom("a", "b")),
    shared: fc.boolean(),
    nodes: fc.array(
      fc.record({
        name: fc.constantFrom("a", "b", "c", "d").map((name) => name as NodeName),
        status: fc.constantFrom("joining", "active", "draining", "dead", "hibernating"),
        alive: fc.boolean(),
        lastSeenAt: fc.integer({ min: 0, max: NOW }),
        version: fc.constantFrom("1", "2"),
        load: fc.record({
          jobs: fc.nat(),
          connections: fc.nat(),
          cpu: fc.constant(0),
          memory: fc.constant(0),
          loopLagMs: fc.nat(10_000),
          slots: fc.option(fc.nat(4), { nil: undefined }),
        }),
      }),
    ),
    waiting: fc.uniqueArray(
      fc.record({ queue: fc.string(), since: fc.integer({ min: 0, max: NOW }), paused: fc.boolean() }),
      { selector: ({ queue }) => queue, maxLength: 5 },
    ),
    ended: fc.record({ of: fc.nat(100), failed: fc.nat(100) }),
    late: fc.uniqueArray(fc.record({ schedule: fc.string(), dueAt: fc.integer({ min: 0, max: NOW }) }), {
      selector: ({ schedule }) => schedule,
      maxLength: 5,
    }),
    refused: fc.option(fc.record({ count: fc.nat(), lastAt: fc.integer({ min: 0, max: NOW }) })),
    agents: fc.nat(3),
    oldestSnapshot: fc.option(fc.nat(2_000_000).map(open)),
    storeTrouble: fc.option(fc.string()),
  });

  it("whatever the facts: known codes, words for people, never from the future, the worst first", () => {
    fc.assert(
      fc.property(facts, (given) => {
        const alerts = alertsOf(given);
        let warned = false;
        for (const alert of alerts) {
          assert.ok(ALERT_CODES.includes(alert.code));
          assert.ok(alert.message.length > 10 && alert.remedy.length > 10);
          assert.ok(alert.since <= given.now, `${alert.code} since ${alert.since}`);
          if (alert.severity === "warning") warned = true;
          else assert.equal(warned, false, "a critical one stands behind a warning");
        }
        assert.ok(alerts.length <= 5 * ALERT_CODES.length);
      }),
    );
  });

  it("that go on keep their beginning, and what is over is forgotten", () => {
    fc.assert(
      fc.property(facts, fc.nat(100_000), (given, later) => {
        const first = alertsOf(given);
        const second = alertsOf({ ...given, now: given.now + later }, first);
        for (const alert of first) {
          const again = second.find(({ code, subject }) => code === alert.code && subject === alert.subject);
          assert.equal(again?.since, alert.since, alert.code);
        }
        assert.deepEqual(alertsOf({ ...WELL, waiting: [] }, second), []);
      }),
    );
  });

  it("of several nodes are each told once, the worse and the earlier", () => {
    const alert: Alert = {
      code: "backlog_old",
      severity: "warning",
      subject: "q",
      message: "m",
      remedy: "r",
      since: 5,
    };
    const worse: Alert = { ...alert, severity: "critical", since: 9 };
    assert.deepEqual(mergeAlerts([[alert], [worse], [{ ...alert, subject: "p", since: 7 }]]), [
      { ...worse, since: 5 },
      { ...alert, subject: "p", since: 7 },
    ]);
  });
});

describe("quantiles", () => {
  it("are values that were measured, in order", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { minLength: 1 }), (values) => {
        const { p50, p95, p99 } = quantiles(values)!;
        for (const value of [p50, p95, p99]) assert.ok(values.includes(value));
        assert.ok(p50 <= p95 && p95 <= p99);
        assert.ok(values.filter((value) => value <= p50).length >= values.length / 2);
      }),
    );
    assert.equal(quantiles([]), null);
  });

  it("of several nodes lie between theirs", () => {
    const parts = [
      { of: 10, quantiles: { p50: 10, p95: 20, p99: 30 } },
      { of: 30, quantiles: { p50: 20, p95: 40, p99: 60 } },
      { of: 0, quantiles: null },
    ];
    assert.deepEqual(mixedQuantiles(parts), { p50: 18, p95: 35, p99: 53 });
    assert.equal(mixedQuantiles([{ of: 0, quantiles: null }]), null);
  });
});
