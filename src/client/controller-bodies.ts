/** The bodies of messages between an agent and the leader, checked against the operation table at compile time. */

import type { AnswerOf, BodyOf } from "../api/operation-table.ts";

export type LeaseRequest = BodyOf<"POST /v1/leases">;
/** One lease for all tasks of the batch. */
export type LeaseBody = NonNullable<AnswerOf<"POST /v1/leases">>;
export type LeasedTaskBody = LeaseBody["tasks"][number];
export type RenewRequest = BodyOf<"POST /v1/leases/renew">;
export type RenewedBody = AnswerOf<"POST /v1/leases/renew">;
export type LogsRequest = BodyOf<"POST /v1/logs">;
export type HeartbeatRequest = BodyOf<"POST /v1/agents/heartbeat">;

type One<T> = Exclude<T, readonly unknown[]>;

export type ResultRequest = One<BodyOf<"POST /v1/results">>;
export type ResultStatus = ResultRequest["status"];
export type ResultErrorBody = NonNullable<ResultRequest["error"]>;
/** Of one result: accepted, or refused with a code. */
export type ResultAnswerBody = One<AnswerOf<"POST /v1/results">>;

/** The answer of a node that does not lead; what it does not know is null. */
export interface NotLeaderBody {
  readonly error: "NOT_LEADER";
  readonly leader_id: string | null;
  readonly leader_url: string | null;
  readonly leader_epoch: number | null;
  readonly node_id: string;
  readonly role: string;
}
