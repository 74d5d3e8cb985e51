/** Stands in until the operation is there. */
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
  readonly jobs: Readonly<
    Record<"scheduled" | "queued" | "processing" | "completed" | "failed" | "cancelled", number>
  >;
  readonly rates: {
    readonly submitted_per_second: number;
    readonly finished_per_second: number;
    readonly failed_per_second: number;
  };
  readonly times: {
    readonly wait_ms: { readonly p50: number; readonly p95: number; readonly p99: number } | null;
    readonly run_ms: { readonly p50: number; readonly p95: number; readonly p99: number } | null;
    readonly of: number;
  };
  readonly backlog: { readonly ready: number; readonly oldest_age_ms: number | null };
  readonly workers: { readonly slots: number; readonly running: number };
  readonly alerts: readonly {
    readonly code: string;
    readonly severity: "warning" | "critical";
    readonly message: string;
    readonly remedy: string;
    readonly since: string;
  }[];
}
