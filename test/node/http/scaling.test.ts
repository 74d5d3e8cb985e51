/** What an autoscaler hears of a whole node while jobs come, wait and are done. */

import assert from "node:assert/strict";
import { it } from "node:test";
import type { JobId } from "../../../src/core/ids.ts";
import { defineTask } from "../../../src/jobs/tasks/task.ts";
import { finished, nodeHere, submit } from "../../support/node-here.ts";
import { eventually } from "../../support/wait.ts";

interface Scaling {
  readonly desired_workers: number;
  readonly current_workers: number;
  readonly slots: number;
  readonly busy: number;
  readonly backlog: number;
  readonly oldest_age_ms: number | null;
  readonly run_ms_p50: number | null;
  readonly reason: string;
}

it("/scaling rises with the backlog, keeps to its bounds, and falls to the least when nothing waits", async (t) => {
  const gate = Promise.withResolvers<void>();
  const node = await nodeHere(t, {
    http: true,
    settings: { WORKER__CONCURRENCY: "2" },
    tasks: [
      defineTask({ name: "held", run: () => gate.promise }),
      defineTask({ name: "brief", run: () => new Promise((resolve) => setTimeout(resolve, 200)) }),
    ],
  });
  const ask = async (query = ""): Promise<Scaling> => {
    const answer = await fetch(`${node.url}/scaling?queue=default&min=1&max=20${query}`);
    assert.equal(answer.status, 200);
    return (await answer.json()) as Scaling;
  };
  const when = (what: string, holds: (scaling: Scaling) => boolean): Promise<Scaling> =>
    eventually(what, async () => {
      const found = await ask();
      return holds(found) ? found : null;
    });

  const empty = await ask();
  assert.deepEqual(
    [empty.desired_workers, empty.current_workers, empty.slots, empty.backlog, empty.oldest_age_ms],
    [1, 1, 2, 0, null],
  );
  await finished(node, await submit(node, "brief"));
  const ids: JobId[] = [];
  const add = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) ids.push(await submit(node, "held"));
  };
  await add(22);
  const some = await when(
    "two to run and twenty to wait",
    ({ busy, backlog }) => busy === 2 && backlog === 20,
  );
  assert.ok(some.run_ms_p50! >= 150, `${some.run_ms_p50}`);
  assert.ok(some.oldest_age_ms !== null);
  // Each takes 0.2 s, and 22 of them are to be done within the target, two at a time in each worker.
  assert.equal(some.desired_workers, 1, some.reason);
  const hurried = await ask("&target_ms=1000");
  assert.ok(hurried.desired_workers >= 2, JSON.stringify(hurried));
  await add(60);
  await when("all of them to wait", ({ backlog }) => backlog === 80);
  const more = await ask("&target_ms=1000");
  assert.ok(more.desired_workers > hurried.desired_workers, `${more.reason}; before: ${hurried.reason}`);
  assert.ok(more.desired_workers <= 20, more.reason);

  gate.resolve();
  for (const id of ids) await finished(node, id);
  const done = await when("nothing to wait", ({ busy, backlog }) => busy === 0 && backlog === 0);
  assert.equal(done.desired_workers, 1, done.reason);
});
