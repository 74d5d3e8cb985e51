/**
 * All metrics of a node: the name, in base units, and what it tells. A name that ends in `_total` is a counter, the others
 * are gauges, but for the histograms.
 */

export const METRICS = {
  // jobs at this node
  baton_jobs_submitted_total: "Jobs that this node has stored.",
  baton_jobs_started_total: "Runs of jobs that have begun here.",
  baton_jobs_finished_total:
    "Runs of jobs that have ended here. retry: failed, and tried again; failed: for good; interrupted: by a drain; lease_lost: taken away.",
  baton_jobs_recovered_total:
    "Jobs that this node, as the leader, took back from dead workers or from runs long past their timeout, by what became of them.",
  baton_jobs_quarantined_total: "Jobs that were put away because too many nodes died while they ran them.",
  baton_claims_total: "Claims of the worker, by what they gave.",
  baton_leases_lost_total: "Leases of the worker that were lost with jobs under them.",
  baton_lease_lost_jobs_total: "Jobs that were held under lost leases.",
  baton_agent_leased_jobs_total: "Jobs that agents have leased from this node.",
  baton_agent_results_total:
    "Results of agents. repeated: said before; refused: the job has moved on; the others as in baton_jobs_finished_total.",
  // schedules
  baton_schedule_lag_seconds:
    "How long the schedule that is most overdue waits to be fired; 0 while none does, and on nodes that do not lead.",
  baton_schedules: "Schedules that this node looks after, as the leader.",
  baton_schedule_fires_total:
    "Occurrences of schedules. skipped: the one before had not ended; already: another leader had noted it; changed: the schedule was; failed: tried again.",
  // the backlog in the store
  baton_queue_jobs: "Jobs in the store, by queue and status.",
  baton_queue_oldest_seconds: "How long the job has been due that waits longest; 0 when none waits.",
  baton_queue_paused: "1 while the queue is paused.",
  baton_backlog_age_seconds:
    "How old the numbers of queues and agents are that this scrape tells; left out before the first.",
  baton_store_dead_rows:
    "Old versions of rows that still take space, by table, as PostgreSQL estimates it; left out with other stores.",
  baton_store_table_bytes: "Size of a table with its indexes; left out with other stores.",
  baton_store_oldest_snapshot_seconds:
    "How long the oldest open transaction has kept dead rows from being removed; 0 while there is none.",
  baton_agents: "Agents that the store knows.",
  baton_store_errors_total:
    "Calls of the store that did not succeed. claim: the worker asked for jobs; results: it brought them; submit: new jobs were to be stored; backlog: a look for metrics.",
  // leadership
  baton_leader: "1 while this node leads in that role.",
  baton_leader_epoch: "The epoch of whoever leads, as this node last saw it; 0 while nobody is known.",
  baton_leader_terms_total: "Terms that this node has begun.",
  baton_leader_terms_ended_total:
    "Terms of this node that have ended. lapsed: not renewed in time; superseded: taken over; slept: the machine slept; resigned and stopped: on purpose.",
  baton_stale_writes_total:
    "Writes that the store refused because somebody else has a newer number. run: results and logs; lease: renewals; owner: events; leader: what an earlier leader would write.",
  // the node and its work in progress
  baton_build_info: "What runs here; always 1.",
  baton_start_time_seconds: "Since when, since 1970.",
  baton_http_requests_total: "Requests that were answered, by route and class of status.",
  baton_http_connections: "Connections that are open.",
  baton_sse_readers: "Streams of events and logs that are open.",
  baton_worker_slots: "Jobs that may run here at a time.",
  baton_worker_running: "Jobs that run here now.",
  baton_worker_last_claim_seconds:
    "How long ago the worker last asked for jobs; it does not while it is full. Left out before the first time.",
  baton_worker_unanswered_seconds:
    "For how long the worker has had room for jobs without an answer to a claim; 0 while it is full.",
  baton_duty_busy_seconds: "For how long a duty of this node, as the leader, has not come to a rest.",
  baton_duty_failures_total: "How often a duty of this node, as the leader, failed and was started again.",
  // the other nodes
  baton_nodes: "Nodes of the cluster as this one sees them.",
  baton_peers_reachable: "Other nodes, by whether this one has lately heard of them or reached them.",
  baton_owned_assignments: "Assignments whose events are this node's business.",
  baton_owned_jobs: "Unfinished jobs in them.",
  baton_orphan_assignments: "Assignments without an owner, as this node found them as the leader.",
  baton_orphan_oldest_seconds: "How long the oldest of them has had none; 0 when there is none.",
  baton_handoffs_total: "Assignments that this node took over from another, by why they changed hands.",
  // the process
  process_cpu_user_seconds_total: "Time on the processor for the program itself.",
  process_cpu_system_seconds_total: "Time on the processor for the kernel.",
  process_cpu_seconds_total: "Time on the processor in all.",
  process_start_time_seconds: "When this node was made, since 1970.",
  process_resident_memory_bytes: "Memory that the process holds.",
  nodejs_heap_size_bytes: "The heap of the engine.",
  nodejs_active_resources: "What keeps the event loop busy.",
  nodejs_eventloop_lag_seconds: "How late it was when it was measured last.",
} as const;

export const HISTOGRAMS = {
  baton_job_run_seconds: "How long runs took.",
  baton_job_wait_seconds: "From the time that a job was due until it was started.",
  baton_claim_seconds: "How long claims took that were answered.",
  baton_schedule_late_seconds: "How much later than planned occurrences were fired.",
  baton_http_request_seconds: "How long answers took.",
  baton_event_loop_lag_seconds:
    "How late a timer of the event loop was, twice a second: all else on it waited as long.",
} as const;
