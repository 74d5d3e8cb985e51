import type { JobSummaryBody } from "../../../src/api/bodies/job-body.ts";
import { JobLink, NodeLink } from "../parts/links.tsx";
import { Progress } from "../parts/meter.tsx";
import { Status } from "../parts/status.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Ago, Took } from "../parts/time.tsx";
import { to } from "../route.ts";

interface JobsTableProps {
  readonly jobs: readonly JobSummaryBody[];
  readonly chosen: ReadonlySet<string>;
  readonly onChoose: (ids: ReadonlySet<string>) => void;
}

export function JobsTable({ jobs, chosen, onChoose }: JobsTableProps) {
  const all = jobs.every(({ job_id }) => chosen.has(job_id));
  const some = !all && chosen.size > 0;
  const box = (
    <input
      type="checkbox"
      aria-label="Select all jobs on this page"
      checked={all}
      indeterminate={some}
      onChange={() => onChoose(all ? new Set() : new Set(jobs.map(({ job_id }) => job_id)))}
    />
  );
  const choose = (id: string): void => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    onChoose(next);
  };
  const check = ({ job_id: id }: JobSummaryBody) => (
    <input type="checkbox" aria-label={`Select ${id}`} checked={chosen.has(id)} onChange={() => choose(id)} />
  );
  return (
    <Table
      label="Jobs"
      rows={jobs}
      keyOf={({ job_id }) => job_id}
      rowClass={({ job_id }) => (chosen.has(job_id) ? "chosen" : undefined)}
      columns={[[box, check, "check"], ...COLUMNS]}
    />
  );
}

const COLUMNS: readonly Column<JobSummaryBody>[] = [
  ["Job", ({ job_id: id }) => <JobLink id={id} />],
  ["Task", ({ task }) => <a href={to(["jobs"], { task })}>{task}</a>],
  ["State", (job) => <State job={job} />],
  ["Queue", ({ queue }) => queue],
  ["Ran on", ({ worker }) => <NodeLink name={worker} />],
  [
    "Runs",
    ({ attempts, crashes }) => (
      <>
        {attempts}
        {crashes > 0 && (
          <span class="bad-text" title="nodes died while they ran it">
            {" "}
            ({crashes} ✕)
          </span>
        )}
      </>
    ),
    "right num",
  ],
  ["Created", (job) => <Ago at={job.created_at} />],
  [
    "Took",
    ({ status, started_at: from, finished_at: to, updated_at: last }) =>
      from === null ? (
        <span class="muted">–</span>
      ) : (
        <Took from={from} until={status === "processing" ? null : (to ?? last)} />
      ),
    "right",
  ],
];

function State({ job }: { job: JobSummaryBody }) {
  const running = job.status === "processing";
  return (
    <>
      <Status word={job.status} />
      {running && job.progress !== null && (
        <>
          {" "}
          <Progress percent={job.progress} label={`Progress of ${job.job_id}`} />
        </>
      )}
      {running && job.cancel_requested && <span class="muted"> asked to stop</span>}
      {job.status === "scheduled" && (
        <span class="muted">
          {" "}
          due <Ago at={job.run_at} />
        </span>
      )}
      {job.error && (
        <span class="error-line" title={job.error.message}>
          {job.error.code}: {job.error.message}
        </span>
      )}
    </>
  );
}
