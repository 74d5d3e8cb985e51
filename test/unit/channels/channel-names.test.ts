import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { checkName } from "../../../src/channels/message-encoding.ts";
import { queues, topics } from "../../../src/channels/channel-names.ts";
import type { NodeName } from "../../../src/core/ids.ts";

const node = "n".repeat(63) as NodeName;

describe("the names of channels", () => {
  test("are those of the architecture, without the prefix of the cluster", () => {
    const short = "a" as NodeName;
    assert.deepEqual(
      [
        queues.dispatch("mail"),
        topics.jobCancel,
        queues.assigned,
        queues.jobStatus(7),
        queues.handoff,
        topics.handoffAck(short),
        topics.workerHeartbeat,
        topics.coordinatorHeartbeat,
      ],
      [
        "job.dispatch.mail",
        "job.cancel",
        "job.assigned",
        "job.7.status",
        "job.handoff",
        "job.handoff.ack.a",
        "worker.heartbeat",
        "coordinator.heartbeat",
      ],
    );
  });

  test("fit, also for the longest names of queues, tasks and nodes", () => {
    for (const name of [
      queues.dispatch("q".repeat(128), "t".repeat(128)),
      queues.jobStatus(Number.MAX_SAFE_INTEGER),
    ]) {
      checkName("queue", name);
    }
    checkName("topic", topics.handoffAck(node));
  });
});
