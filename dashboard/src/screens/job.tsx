/** One job: what it is, where it is, why it waits, what became of it. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { JobBody } from "../../../src/api/bodies/job-body.ts";
import { isFinal } from "../../../src/core/jobs/job.ts";
import { FACT_FIELDS, type Fields } from "../../../src/core/jobs/job-fields.ts";
import { useResource } from "../api/resource.ts";
import { Action } from "../parts/action.tsx";
import { Copy } from "../parts/copy.tsx";
import { duration, plural } from "../parts/format.ts";
import { JsonView } from "../parts/json-view.tsx";
import { NodeLink, QueueLink } from "../parts/links.tsx";
import { Progress } from "../parts/meter.tsx";
import { ProblemNote, ResourceNote } from "../parts/notes.tsx";
import { Status } from "../parts/status.tsx";
import { Facts, Section } from "../parts/table.tsx";
import { Ago, Took } from "../parts/time.tsx";
import { go, to } from "../route.ts";
import { Page } from "../shell/page.tsx";
import { JobHistory } from "./job-history.tsx";
import { JobLogs } from "./job-logs.tsx";

export function JobScreen({ id }: { id: string }) {
  const asked = useResource("GET /jobs/{id}", { params: { id } }, { freshMs: 1_000, everyMs: 5_000 });
  const { data: job, problem, reload } = asked;
  const [progress, setProgress] = useState<{ progress: number | null; message: string | null } | null>(null);
  if (!job) {
    return (
      <Page title="Job" about={<span class="mono">{id}</span>}>
        <ResourceNote of={asked} what="this job" />
        <p>
          <a href={to(["jobs"])}>All jobs</a>
        </p>
      </Page>
    );
  }
  const running = !isFinal(job.status);
  // The log has newer progress as long as the job runs.
  const done = running && progress ? progress : { progress: job.progress, message: job.progress_message };
  return (
    <Page
      title={job.task}
      about={
        <>
          <span class="mono">{job.job_id}</span> <Copy text={job.job_id} what="the job's id" />
        </>
      }
      actions={<JobActions job={job} onChange={reload} />}
    >
      {problem && <ProblemNote problem={problem} retry={reload} />}
      <p class="job-state">
        <Status word={job.status} />
        {job.status === "processing" && job.cancel_requested && <Status word="asked to stop" tone="wait" />}
        {done.progress !== null && job.status !== "queued" && (
          <Progress percent={done.progress} label="Progress of this job" />
        )}
        {done.message && <span>{done.message}</span>}
      </p>
      {job.waiting_for && (
        <div class="note wait" data-testid="waiting-for">
          <p>
            <strong>Why it waits:</strong> {job.waiting_for.message}{" "}
            <span class="muted">({job.waiting_for.code})</span>
          </p>
        </div>
      )}
      {job.error && <ErrorNote error={job.error} />}
      <JobFacts job={job} />
      <JobLogs
        job={id}
        running={running}
        live={job.status === "processing"}
        onProgress={setProgress}
        onEnd={reload}
      />
      <div class="columns">
        <Section id="payload" title="Payload">
          <JsonView value={job.payload} label="Payload" />
        </Section>
        <Section id="result" title="Result">
          <Result job={job} />
        </Section>
      </div>
      <JobHistory id={id} job={job} />
    </Page>
  );
}

function ErrorNote({ error }: { error: NonNullable<JobBody["error"]> }) {
  const stack = error["stack"];
  return (
    <div class="note bad">
      <p>
        <strong class="prewrap">{error.message}</strong> <span class="muted">({error.code})</span>
      </p>
      {typeof stack === "string" && (
        <details>
          <summary>Where it happened</summary>
          <pre class="code" tabIndex={0} role="region" aria-label="Stack">
            {stack}
          </pre>
        </details>
      )}
    </div>
  );
}

function JobFacts({ job }: { job: JobBody }) {
  const runs = job.status === "processing";
  return (
    <Facts
      of={[
        ["Queue", <QueueLink name={job.queue} />],
        ["Priority", job.priority],
        ["Created", <Ago at={job.created_at} />],
        (job.status === "scheduled" || job.run_at !== job.created_at) && ["Due", <Ago at={job.run_at} />],
        job.started_at !== null && ["Started", <Ago at={job.started_at} />],
        job.finished_at !== null && ["Finished", <Ago at={job.finished_at} />],
        job.started_at !== null && [
          runs ? "Runs for" : "Took",
          <Took from={job.started_at} until={job.finished_at ?? (runs ? null : job.updated_at)} />,
        ],
        job.worker !== null && [runs ? "Runs on" : "Ran on", <NodeLink name={job.worker} />],
        ["Owned by", <NodeLink name={job.owner} />],
        ["Attempts", `${plural(job.attempts, "run")}, ${job.failures} failed, ${job.max_attempts} allowed`],
        job.interruptions + job.crashes > 0 && [
          "Not its fault",
          `${job.interruptions} interruptions, ${job.crashes} crashes`,
        ],
        job.killed.length > 0 && ["Died while running it", job.killed.join(", ")],
        ...FACT_FIELDS.map(({ wire, fact, filter }): [string, ComponentChildren] | null => {
          const value = (job as Fields)[wire];
          if (value === null || value === undefined) return null;
          if (fact.as === "duration") return [fact.page, duration(value as number)];
          if (!Array.isArray(value)) return [fact.page, <span class="mono">{String(value)}</span>];
          return value.length === 0 ? null : [fact.page, <Texts of={value} filter={filter?.name} />];
        }),
        [
          "Epochs",
          <span class="num">
            job {job.job_epoch}, owner {job.owner_epoch}, leader {job.leader_epoch}
          </span>,
        ],
        job.schedule !== null && ["Schedule", <a href={to(["schedules", job.schedule])}>{job.schedule}</a>],
      ]}
    />
  );
}

/** Each leads to the list of the jobs that have it too. */
function Texts({ of, filter }: { of: readonly string[]; filter: string | undefined }) {
  return (
    <>
      {of.flatMap((text) => [
        <a key={text} class="badge" href={to(["jobs"], filter === undefined ? {} : { [filter]: text })}>
          {text}
        </a>,
        " ",
      ])}
    </>
  );
}

function JobActions({ job, onChange }: { job: JobBody; onChange: () => void }) {
  const params = { id: job.job_id };
  const final = isFinal(job.status);
  return (
    <>
      <a class="button" href={to(["jobs", "new"], { clone: job.job_id })}>
        Clone…
      </a>
      <Action
        route="POST /jobs/{id}/retry"
        send={{ params }}
        done="It is queued again."
        onDone={onChange}
        off={
          job.status === "failed" || job.status === "cancelled"
            ? null
            : `It is ${job.status}; only failed and cancelled jobs can be retried.`
        }
      >
        Retry
      </Action>
      <Action
        route="POST /jobs/{id}/cancel"
        send={{ params, body: { reason: "cancelled in the dashboard" } }}
        done={({ status }: { status: string }) =>
          status === "cancelled" ? "It is cancelled." : "It was asked to stop."
        }
        onDone={onChange}
        class="danger"
        off={final ? `It is ${job.status} already.` : null}
        ask={{
          title: "Cancel this job?",
          body:
            job.status === "processing"
              ? "It is running. Its task is asked to stop, and may still finish."
              : "It waits, and will not run.",
          action: "Cancel the job",
          danger: true,
        }}
      >
        Cancel…
      </Action>
      <Action
        route="DELETE /jobs/{id}"
        send={{ params }}
        done="The job is deleted."
        onDone={() => go(["jobs"])}
        class="danger"
        off={final ? null : "Cancel it first."}
        ask={{
          title: "Delete this job?",
          body: "It is removed with its log and its result. This cannot be undone.",
          action: "Delete the job",
          danger: true,
        }}
      >
        Delete…
      </Action>
    </>
  );
}

const NO_RESULT: Readonly<Record<string, string>> = {
  failed: "It failed and has no result.",
  cancelled: "It was cancelled and has no result.",
};

function Result({ job }: { job: JobBody }) {
  const finished = job.status === "completed";
  const result = useResource(
    finished ? "GET /jobs/{id}/result" : null,
    { params: { id: job.job_id } },
    { freshMs: null },
  );
  useEffect(() => {
    if (finished) result.reload();
  }, [job.job_epoch]);
  if (!finished) {
    return <p class="muted">{NO_RESULT[job.status] ?? "There is one when it is completed."}</p>;
  }
  if (!result.data || result.problem) return <ResourceNote of={result} what="the result" />;
  return <JsonView value={result.data.result} label="Result" />;
}
