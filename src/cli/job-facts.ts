/** One job for a person to read: what it is, how it fares, and why. */

import type { JobBody } from "../api/job-body.ts";
import { formatDuration } from "../config/duration.ts";
import { ago, facts, statusText } from "./output.ts";
import { progressText } from "./progress-line.ts";
import type { Terminal } from "./terminal.ts";

export function jobFacts(terminal: Terminal, job: JobBody): string {
  const time = (at: string | null): string | null => (at === null ? null : `${at} (${ago(terminal, at)})`);
  const progress = progressText(job.progress, job.progress_message);
  return facts(terminal, [
    ["job", job.job_id],
    ["task", job.task],
    ["status", statusText(terminal, job.status) + (job.cancel_requested ? " (told to stop)" : "")],
    ["waits", job.waiting_for?.message ?? null],
    ["progress", progress === "" ? null : progress],
    ["error", job.error ? `${job.error.message} (${job.error.code})` : null],
    ["queue", job.queue],
    ["priority", String(job.priority)],
    ["attempts", `${job.attempts} (${job.failures} of ${job.max_attempts} failed)`],
    ["interrupted", job.interruptions > 0 ? String(job.interruptions) : null],
    ["crashes", job.crashes > 0 ? `${job.crashes} (${job.killed.join(", ")})` : null],
    ["timeout", job.timeout_ms === null ? null : formatDuration(job.timeout_ms)],
    ["key", job.idempotency_key],
    ["schedule", job.schedule],
    ["created", time(job.created_at)],
    ["run at", job.run_at === job.created_at ? null : time(job.run_at)],
    ["started", time(job.started_at)],
    ["finished", time(job.finished_at)],
    ["owner", `${job.owner} (epoch ${job.owner_epoch})`],
    ["worker", job.worker === null ? null : `${job.worker} (epoch ${job.job_epoch})`],
    ["payload", JSON.stringify(job.payload)],
  ]);
}
