/** Bodies of operations that are being built elsewhere; each moves to the table when it is there. */

import type { JobStatus } from "../../../src/core/job.ts";

export interface TermBody {
  readonly role: string;
  readonly epoch: number;
  readonly node_id: string;
  readonly started_at: string;
  readonly ended_at: string | null;
  readonly reason: string | null;
}

export interface RefusedWriteBody {
  readonly at: string;
  readonly node: string;
  readonly what: string;
  readonly carried_epoch: number;
  readonly current_epoch: number;
  readonly job_id: string | null;
}

export interface FailureGroupBody {
  readonly task: string;
  readonly code: string;
  readonly message: string;
  readonly count: number;
  readonly first_at: string;
  readonly last_at: string;
  readonly example_job_id: string;
  readonly queues: readonly string[];
}

export interface BulkBody {
  readonly matched: number;
  readonly changed: number;
  readonly skipped: readonly { readonly job_id: string; readonly why: string }[];
  readonly skipped_count: number;
  readonly next_cursor: string | null;
  readonly partial: boolean;
}

export interface BulkRequest {
  readonly action: "retry" | "cancel" | "delete";
  readonly filter?: BulkFilter;
  readonly ids?: readonly string[];
  readonly dry_run?: boolean;
  readonly limit?: number;
  readonly cursor?: string;
  readonly reason?: string;
}

export interface BulkFilter {
  readonly status?: JobStatus;
  readonly queue?: string;
  readonly task?: string;
  readonly since?: string;
  readonly until?: string;
  readonly error_code?: string;
  readonly error_message?: string;
}

export interface TimelineBody {
  readonly job_id: string;
  readonly events: readonly {
    readonly at: string;
    readonly what: string;
    readonly node: string | null;
    readonly job_epoch: number | null;
    readonly owner_epoch: number | null;
    readonly leader_epoch: number | null;
    readonly message: string | null;
  }[];
  readonly runs: readonly {
    readonly job_epoch: number;
    readonly worker: string | null;
    readonly leader_epoch: number | null;
    readonly started_at: string | null;
    readonly ended_at: string | null;
    readonly outcome: string;
    readonly error: { readonly code: string; readonly message: string } | null;
  }[];
  readonly handoffs: readonly {
    readonly at: string;
    readonly from: string | null;
    readonly to: string | null;
    readonly owner_epoch: number | null;
    readonly reason: string | null;
  }[];
}

export interface ComingAnswers {
  "GET /cluster/leaders/history": {
    terms: readonly TermBody[];
    refused: { count: number; examples: readonly RefusedWriteBody[] };
    partial: boolean;
  };
  "GET /cluster/failures": {
    groups: readonly FailureGroupBody[];
    looked_at: number;
    complete: boolean;
    partial: boolean;
  };
  "POST /cluster/jobs/bulk": BulkBody;
  "GET /jobs/{id}/timeline": TimelineBody;
}

export interface ComingParts {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
}
