import assert from "node:assert/strict";
import { hasCode } from "../../../src/core/errors.ts";
import { AUTHOR, lease, LEASE_MS, type Promises, reportRuns, settleRuns } from "../../support/store-world.ts";

export const lifePromises: Promises = {
  "a store says what it guarantees": async (world) => {
    const { name, durability, shared } = world.store.guarantees;
    assert.match(name, /^[a-z]+$/);
    assert.ok(["nothing", "process crash", "power loss"].includes(durability));
    assert.equal(typeof shared, "boolean");
  },

  "a closed store refuses instead of hanging or losing, also through what was taken from it before": async (
    world,
  ) => {
    const run = await world.running();
    const term = await world.term();
    const { jobs, queues, schedules, terms } = world.store;
    await world.store.close();
    await world.store.close();
    const calls: Record<string, () => Promise<unknown>> = {
      submit: () => jobs.submit([world.newJob()], AUTHOR),
      claim: () => jobs.claim(world.request()),
      settle: () => settleRuns({ jobs }, [{ run, outcome: { kind: "completed", result: "1" } }]),
      report: () => reportRuns({ jobs }, [{ run, logs: [], progress: { value: 1, message: null } }]),
      renew: () => jobs.renew(lease("node-a/1"), LEASE_MS),
      get: () => jobs.get(run.id),
      list: () => jobs.list({ limit: 1 }),
      "queues.list": () => queues.list(),
      "schedules.list": () => schedules.list(),
      "terms.grant": () => terms.grant(term.role, { name: term.leader, incarnation: "2" }),
    };
    for (const [name, call] of Object.entries(calls)) {
      await assert.rejects(
        async () => call(),
        (error) => hasCode(error, "STOPPED") || hasCode(error, "STORE_UNAVAILABLE"),
        name,
      );
    }
  },
};
