/** Calls whose rows come into the table of operations on another branch; the shapes are those agreed on. */

import type { BatonClient } from "../client/client.ts";

export interface LeaderHistory {
  readonly terms: readonly {
    readonly role: string;
    readonly epoch: number;
    readonly node_id: string;
    readonly started_at: string;
    readonly ended_at: string | null;
    readonly reason: string | null;
  }[];
  readonly refused: {
    readonly count: number;
    readonly examples: readonly {
      readonly at: string;
      readonly node: string;
      readonly what: string;
      readonly carried_epoch: number | null;
      readonly current_epoch: number | null;
      readonly job_id: string | null;
    }[];
  };
  readonly partial: boolean;
}

export interface FailureGroups {
  readonly groups: readonly {
    readonly task: string;
    readonly code: string;
    readonly message: string;
    readonly count: number;
    readonly first_at: string;
    readonly last_at: string;
    readonly example_job_id: string;
    readonly queues: readonly string[];
  }[];
  readonly looked_at: number;
  readonly complete: boolean;
  readonly partial: boolean;
}

export interface Timeline {
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
    readonly worker: string;
    readonly leader_epoch: number;
    readonly started_at: string;
    readonly ended_at: string | null;
    readonly outcome: string;
    readonly error: { readonly code: string; readonly message: string } | null;
  }[];
  readonly handoffs: readonly {
    readonly at: string;
    readonly from: string;
    readonly to: string;
    readonly owner_epoch: number;
    readonly reason: string;
  }[];
}

export interface BulkPage {
  readonly matched: number;
  readonly changed: number;
  readonly skipped: readonly { readonly job_id: string; readonly why: string }[];
  readonly skipped_count: number;
  readonly next_cursor: string | null;
  readonly partial: boolean;
}

type Query = Readonly<Record<string, string | number | undefined>>;

export function leaderHistory(client: BatonClient, query: Query): Promise<LeaderHistory> {
  return client.request("GET /cluster/leaders/history" as never, { query } as never);
}

export function failureGroups(client: BatonClient, query: Query): Promise<FailureGroups> {
  return client.request("GET /cluster/failures" as never, { query } as never);
}

export function timelineOf(client: BatonClient, id: string): Promise<Timeline> {
  return client.request("GET /jobs/{id}/timeline" as never, { params: { id } } as never);
}

export function bulkPage(client: BatonClient, body: unknown): Promise<BulkPage> {
  return client.request("POST /cluster/jobs/bulk" as never, { body } as never);
}
