/** Jobs, and what is asked of a store about them, as most tests need them. What matters to a test is given by it. */

import { jobId, type JobId, type LeaseId, type NodeName } from "../../src/core/ids.ts";
import type { NodeInfo } from "../../src/core/node.ts";
import type { ScheduleDefinition } from "../../src/core/schedules/schedule.ts";
import { systemRandom, type Random } from "../../src/platform/random.ts";
import type { DispatchRequest } from "../../src/store/ownership.ts";
import type { ClaimedJob, ClaimRequest, NewJob } from "../../src/store/store.ts";

export function newJob(fields: Partial<NewJob> = {}, random: Random = systemRandom): NewJob {
  return {
    id: jobId("node-a" as NodeName, random.timedUuid()),
    task: "work",
    queue: "default",
    priority: 0,
    payload: "{}",
    delayMs: 0,
    runAt: null,
    maxAttempts: 3,
    timeoutMs: null,
    idempotencyKey: null,
    ...fields,
  };
}

export function claimRequest(fields: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    author: { node: "node-a" as NodeName, ownerEpoch: 1, leaderEpoch: 1 },
    worker: "node-a",
    lease: "node-a/1/0" as LeaseId,
    leaseMs: 10_000,
    limit: 100,
    tasks: new Set(["work"]),
    queues: null,
    exceptQueues: new Set(),
    opens: true,
    suspect: true,
    ...fields,
  };
}

export function dispatchRequest(fields: Partial<DispatchRequest> = {}): DispatchRequest {
  return {
    tasks: new Set(["work"]),
    queues: null,
    exceptQueues: new Set<string>(),
    limit: 1_000,
    size: 1,
    suspect: true,
    ...fields,
  };
}

export function scheduleDefinition(fields: Partial<ScheduleDefinition> = {}): ScheduleDefinition {
  return {
    name: "nightly",
    timing: { kind: "cron", expression: "0 3 * * *", zone: "Europe/Berlin" },
    task: "work",
    payload: '{"from":"schedule"}',
    queue: "default",
    priority: 0,
    maxAttempts: 3,
    timeoutMs: null,
    missed: "skip",
    missedMax: 10,
    overlap: "allow",
    ...fields,
  };
}

export function claimedJob(fields: Partial<ClaimedJob> = {}): ClaimedJob {
  return {
    id: "node-a-1" as JobId,
    jobEpoch: 1,
    lease: "node-a/1" as LeaseId,
    task: "work",
    queue: "default",
    priority: 0,
    payload: "null",
    attempts: 1,
    failures: 0,
    interruptions: 0,
    crashes: 0,
    maxAttempts: 3,
    timeoutMs: null,
    createdAt: 0,
    runAt: 0,
    leaderEpoch: 1,
    ...fields,
  };
}

export function nodeInfo(name: string, fields: Partial<NodeInfo> = {}): NodeInfo {
  return {
    name: name as NodeName,
    incarnation: `${name}-1`,
    url: `http://${name}:8420`,
    hostname: name,
    address: null,
    httpPort: null,
    roles: ["gateway", "function", "worker", "scheduler"],
    capabilities: ["hello"],
    version: "1",
    status: "active",
    startedAt: 0,
    lastSeenAt: 0,
    alive: true,
    load: { jobs: 0, connections: 0, cpu: 0, memory: 0, loopLagMs: 0 },
    ...fields,
  };
}
