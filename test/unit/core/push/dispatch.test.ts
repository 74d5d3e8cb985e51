import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { dispatchRoute, queues } from "../../../../src/channels/channel-names.ts";
import {
  assignmentSize,
  dispatchLimit,
  groupWorkers,
  messageSize,
  routeOf,
  type Demand,
  type Outstanding,
} from "../../../../src/core/push/dispatch.ts";

interface Sketch {
  readonly queues?: readonly string[];
  readonly except?: readonly string[];
  readonly tasks?: readonly string[];
  readonly wants?: number;
  readonly runningMax?: number;
}

function worker({
  queues: worked,
  except = [],
  tasks = ["work"],
  wants = 10,
  runningMax = 10,
}: Sketch): Demand {
  return {
    scope: JSON.stringify([worked, except, tasks]),
    queues: worked ? new Set(worked) : null,
    exceptQueues: new Set(except),
    tasks: new Set(tasks),
    wants,
    runningMax,
    suspects: 1,
  };
}

function limits(workers: readonly Sketch[], outstanding: readonly Outstanding[] = []): number[] {
  const groups = groupWorkers(workers.map(worker));
  return groups.map((group) => dispatchLimit(group, groups, outstanding));
}

const out = (queue: string, jobs: number, task: string | null = null): Outstanding => ({ queue, task, jobs });

describe("how much is dispatched", () => {
  it("is what workers of the same scope want together, less what is outstanding", () => {
    assert.deepEqual(limits([{ wants: 3 }, { wants: 4 }]), [7]);
    assert.deepEqual(limits([{ wants: 3 }, { wants: 4 }], [out("a", 5)]), [2]);
    assert.deepEqual(limits([{ wants: 3 }], [out("a", 5)]), [0]);
    assert.deepEqual(limits([]), []);
  });

  it("is not less for what others wait for", () => {
    assert.deepEqual(limits([{ queues: ["a"] }, { queues: ["b"] }], [out("b", 10)]), [10, 0]);
    assert.deepEqual(limits([{ tasks: ["t"] }, { tasks: ["u"] }], [out("a", 10, "t")]), [0, 10]);
  });

  it("counts on others to take their part of what all may take", () => {
    assert.deepEqual(limits([{ queues: ["a", "b"] }, { queues: ["a"] }], [out("a", 10)]), [10, 10]);
    assert.deepEqual(limits([{ queues: ["a", "b"] }, { queues: ["a"] }], [out("a", 20)]), [0, 0]);
    assert.deepEqual(limits([{ queues: ["a", "b"] }, { queues: ["a"] }], [out("a", 15)]), [5, 5]);
    // The first has its fill in b, so all of a is for the second.
    assert.deepEqual(
      limits([{ queues: ["a", "b"] }, { queues: ["a"] }], [out("b", 10), out("a", 10)]),
      [0, 0],
    );
  });

  it("is bounded for one request", () => {
    assert.deepEqual(limits([{ wants: 50_000, runningMax: 100_000 }]), [1_000]);
  });

  it("is worth a request when jobs are short", () => {
    assert.deepEqual(limits([{ wants: 400 }], [out("a", 350)]), [0]);
    assert.deepEqual(limits([{ wants: 400 }], [out("a", 300)]), [100]);
    assert.deepEqual(limits([{ wants: 8 }], [out("a", 7)]), [1], "long ones are dispatched one by one");
  });
});

describe("the portions", () => {
  const [long, short] = [{ wants: 10 }, { wants: 1_000 }].map((sketch) => groupWorkers([worker(sketch)])[0]!);

  it("are small while jobs are long", () => {
    assert.deepEqual([assignmentSize(long!), messageSize(long!, 500)], [20, 1]);
  });

  it("grow when workers ask for more than they can run at once", () => {
    assert.deepEqual([assignmentSize(short!), messageSize(short!, 500)], [250, 25]);
  });

  it("leave something for each worker", () => {
    const [group] = groupWorkers([worker({ wants: 1_000 }), worker({ wants: 1_000 })]);
    assert.equal(messageSize(group!, 12), 3);
    assert.equal(messageSize(group!, 1), 1);
  });
});

describe("where a job goes", () => {
  it("is to all workers of its queue, unless one of them does not know its task", () => {
    const groups = groupWorkers([
      worker({ tasks: ["t", "u"], queues: ["a"] }),
      worker({ tasks: ["t"], except: ["c"] }),
    ]);
    assert.deepEqual(routeOf("a", "t", groups), { queue: "a", task: null });
    assert.deepEqual(routeOf("a", "u", groups), { queue: "a", task: "u" });
    assert.deepEqual(routeOf("c", "u", groups), { queue: "c", task: null });
  });

  it("is read from the name of the queue that it is sent to", () => {
    assert.deepEqual(dispatchRoute(queues.dispatch("a:b/c.d")), { queue: "a:b/c.d", task: null });
    assert.deepEqual(dispatchRoute(queues.dispatch("a", "b.c")), { queue: "a", task: "b.c" });
    assert.equal(dispatchRoute(queues.assigned), null);
  });
});
