import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { checkName } from "../../src/channels/message-text.ts";
import { queues, topics } from "../../src/channels/names.ts";
import { jobId, type NodeName } from "../../src/core/ids.ts";

const node = "n".repeat(63) as NodeName;
const id = jobId(node, "0198b3c2-1111-7222-8333-444455556666");

describe("the names of channels", () => {
  test("are those of the architecture, without the prefix of the cluster", () => {
    const short = "a" as NodeName;
    const job = jobId(short, "0198b3c2-1111-7222-8333-444455556666");
    assert.deepEqual(
      [
        queues.dispatch("mail"),
        topics.jobCancel,
        queues.assigned,
        queues.jobStatus(job),
        queues.jobLogs(job),
        queues.handoff,
        topics.handoffAck(short),
        topics.workerHeartbeat,
        topics.coordinatorHeartbeat,
      ],
      [
        "job.dispatch.mail",
        "job.cancel",
        "job.assigned",
        `job.${job}.status`,
        `job.${job}.logs`,
        "job.handoff",
        "job.handoff.ack.a",
        "worker.heartbeat",
        "coordinator.heartbeat",
      ],
    );
  });

  test("fit, also for the longest names of queues, nodes and jobs", () => {
    for (const name of [queues.dispatch("q".repeat(128)), queues.jobStatus(id), queues.jobLogs(id)]) {
      checkName("queue", name);
    }
    checkName("topic", topics.handoffAck(node));
  });
});
