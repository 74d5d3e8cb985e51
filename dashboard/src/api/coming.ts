/** Bodies of operations that are being built elsewhere; each moves to the table when it is there. */

import type { JobStatus } from "../../../src/core/job.ts";

export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export interface AlertBody {
  readonly code: string;
  readonly severity: "warning" | "critical";
  readonly message: string;
  readonly remedy: string;
  readonly since: string;
}

export interface OverviewBody {
  readonly at: string;
  readonly node: string;
  readonly partial: boolean;
  readonly unreachable: readonly string[];
  readonly cluster: {
    readonly name: string;
    readonly formed: boolean;
    readonly total_nodes: number;
    readonly active_nodes: number;
    readonly draining_nodes: number;
    readonly dead_nodes: number;
    readonly joining_nodes: number;
    readonly coordination: string;
    readonly channels: string;
    readonly dispatch: string;
    readonly store: string;
  };
  readonly leader: {
    readonly node_id: string;
    readonly epoch: number;
    readonly acquired_at: string;
    readonly lease_until: string;
  } | null;
  readonly jobs: Readonly<Record<JobStatus, number>>;
  readonly rates: {
    readonly submitted_per_second: number;
    readonly finished_per_second: number;
    readonly failed_per_second: number;
  };
  readonly times: {
    readonly wait_ms: Percentiles | null;
    readonly run_ms: Percentiles | null;
    readonly of: number;
  };
  readonly backlog: { readonly ready: number; readonly oldest_age_ms: number | null };
  readonly workers: { readonly slots: number; readonly running: number };
  readonly alerts: readonly AlertBody[];
}

export interface JournalEntryBody {
  readonly id: string;
  readonly at: string;
  readonly kind: string;
  readonly node: string;
  readonly actor: string | null;
  readonly subject: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

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

export interface SettingBody {
  readonly path: string;
  readonly value: unknown;
  readonly source: string;
  readonly is_default: boolean;
}

export interface SessionBody {
  readonly principal: string;
  readonly permission: "read" | "submit" | "operate" | "admin";
  readonly open: boolean;
}

export interface ComingAnswers {
  "GET /cluster/overview": OverviewBody;
  "GET /cluster/journal": {
    entries: readonly JournalEntryBody[];
    next_cursor: string | null;
    partial: boolean;
    unreachable: readonly string[];
  };
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
  "GET /node/settings": { node: string; settings: readonly SettingBody[] };
  "GET /session": SessionBody;
  "POST /session": SessionBody;
  "DELETE /session": unknown;
}

export interface ComingParts {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
}
