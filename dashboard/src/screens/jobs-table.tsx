import type { JobSummaryBody } from "../../../src/api/bodies/job-body.ts";
import { JobLink, NodeLink } from "../parts/links.tsx";
import { Progress } from "../parts/meter.tsx";
import { Status } from "../parts/status.tsx";
import { Table } from "../parts/table.tsx";
import { Ago, Took } from "../parts/time.tsx";
import { to } from "../route.ts";

interface Props {
  readonly jobs: readonly JobSummaryBody[];
  readonly chosen: ReadonlySet<string>;
  readonly onChoose: (ids: ReadonlySet<string>) => void;
}

export function JobsTable({ jobs, chosen, onChoose }: Props) {
  const all = jobs.every(({ job_id }) => chosen.has(job_id));
  const some = !all && chosen.size > 0;
  return (
    <Table
      label="Jobs"
      class="jobs"
      head={
        <>
          <th class="check">
            <input
              type="checkbox"
              aria-label="Select all jobs on this page"
              checked={all}
              indeterminate={some}
              onChange={() => onChoose(all ? new Set() : new Set(jobs.map(({ job_id }) => job_id)))}
            />
          </th>
          <th>Job</th>
          <th>Task</th>
          <th>State</th>
          <th>Queue</th>
          <th>Ran on</th>
          <th class="right">Runs</th>
          <th>Created</th>
          <th class="right">Took</th>
        </>
      }
    >
      {jobs.map((job) => (
        <Row
          key={job.job_id}
          job={job}
          chosen={chosen.has(job.job_id)}
          onChoose={() => {
            const next = new Set(chosen);
            if (!next.delete(job.job_id)) next.add(job.job_id);
            onChoose(next);
          }}
        />
      ))}
    </Table>
  );
}

function Row({ job, chosen, onChoose }: { job: JobSummaryBody; chosen: boolean; onChoose: () => void }) {
  const running = job.status === "processing";
  return (
    <tr class={chosen ? "chosen" : undefined}>
      <td class="check">
        <input type="checkbox" aria-label={`Select ${job.job_id}`} checked={chosen} onChange={onChoose} />
      </td>
      <td>
        <JobLink id={job.job_id} />
      </td>
      <td>
        <a href={to(["jobs"], { task: job.task })}>{job.task}</a>
      </td>
      <td>
        <Status word={job.status} />
        {running && job.progress !== null && (
          <>
            {" "}
            <Progress percent={job.progress} label={`Progress of ${job.job_id}`} />
          </>
        )}
        {running && job.cancel_requested && <span class="muted"> told to stop</span>}
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
      </td>
      <td>{job.queue}</td>
      <td>
        <NodeLink name={job.worker} />
      </td>
      <td class="right num">
        {job.attempts}
        {job.crashes > 0 && (
          <span class="bad-text" title="nodes died while they ran it">
            {" "}
            ({job.crashes} ✕)
          </span>
        )}
      </td>
      <td>
        <Ago at={job.created_at} />
      </td>
      <td class="right">
        {job.started_at === null ? (
          <span class="muted">–</span>
        ) : (
          <Took from={job.started_at} until={running ? null : (job.finished_at ?? job.updated_at)} />
        )}
      </td>
    </tr>
  );
}
