import type { NodeName } from "../../../../src/core/ids.ts";
import { DEFAULT_BUDGETS } from "../../../../src/core/jobs/job.ts";
import { DispatchInbox } from "../../../../src/push/dispatch/dispatch-inbox.ts";
import { StatusSink } from "../../../../src/push/dispatch/status-sink.ts";
import { systemClock } from "../../../../src/platform/clock.ts";
import { silentLog } from "../../../../src/platform/log.ts";
import { NodeEvents } from "../../../../src/platform/node-events.ts";
import { lifecycleStress } from "../../../support/lifecycle-stress.ts";
import { memoryBackend } from "./world.ts";

async function shared() {
  const backend = await memoryBackend();
  const channels = await backend.channels("node");
  const identity = { name: "node" as NodeName, incarnation: "1" };
  return { backend, parts: { channels, clock: systemClock, log: silentLog, identity } };
}

lifecycleStress("dispatch inbox", async () => {
  const { backend, parts } = await shared();
  const service = new DispatchInbox({
    ...parts,
    ownership: backend.store.ownership!,
    store: backend.store,
    budgets: DEFAULT_BUDGETS,
    tasks: { names: () => new Set(["work"]) },
    settings: { concurrency: 1, queues: new Set(["default"]), exceptQueues: new Set() },
    signal: { raise: () => {} },
  });
  return { service, close: () => backend.close() };
});

lifecycleStress("status sink", async () => {
  const { backend, parts } = await shared();
  const service = new StatusSink({ ...parts, events: new NodeEvents(silentLog), store: backend.store });
  return { service, close: () => backend.close() };
});
