/** A form for a new job, made from the schema of its task. */

import { useEffect, useState } from "preact/hooks";
import type { JobRequestBody, SubmittedBody } from "../../../src/api/operations/jobs/submit-jobs.ts";
import { JOB_FIELDS } from "../../../src/core/jobs/job-fields.ts";
import { call } from "../api/call.ts";
import { useResource } from "../api/resource.ts";
import { ProblemNote } from "../parts/notes.tsx";
import { beginWith } from "../parts/schema.ts";
import { useSubmission } from "../parts/submission.ts";
import { go, place, refine, to } from "../route.ts";
import { Page } from "../shell/page.tsx";
import { said } from "../shell/toasts.tsx";
import { isAt, JobOptions, type Options, optionsOf } from "./job-options.tsx";
import { PayloadFields, SubmitRow, TaskPicker, useTasks } from "./task-form.tsx";

export function NewJobScreen() {
  const { task = "", clone } = place.value.query;
  const tasks = useTasks(task);
  const original = useResource(
    clone ? "GET /jobs/{id}" : null,
    { params: { id: clone ?? "" } },
    { freshMs: null },
  );
  const [payload, setPayload] = useState<unknown>(undefined);
  const [options, setOptions] = useState<Options>({});
  const [filled, setFilled] = useState(0);

  const fill = (value: unknown): void => {
    setPayload(value);
    setFilled((count) => count + 1);
  };
  useEffect(() => {
    const job = original.data;
    if (!job) return;
    refine({ task: job.task });
    setOptions(optionsOf(job));
    fill(job.payload);
  }, [original.data]);
  useEffect(() => {
    if (!clone && tasks.schema) fill(beginWith(tasks.schema));
  }, [tasks.schema]);

  const { onSubmit, busy, problem, at, forget } = useSubmission(async () => {
    const body: JobRequestBody = { task, ...options, ...(payload !== undefined && { payload }) };
    const { job_id } = (await call("POST /jobs", { body })) as SubmittedBody;
    said("The job is submitted.");
    go(["jobs", job_id]);
  });
  const placed = at !== null && JOB_FIELDS.some(({ wire }) => isAt(at.field, wire));
  return (
    <Page title={clone ? "Clone a job" : "New job"}>
      {original.problem && <ProblemNote problem={original.problem} />}
      {problem && !placed && <ProblemNote problem={problem} />}
      <form class="form" onSubmit={onSubmit}>
        <TaskPicker
          task={task}
          names={tasks.names}
          problem={at}
          onChange={(name) => {
            if (name === task) return;
            forget();
            if (!clone) fill(undefined);
            refine({ task: name });
          }}
        />
        {task !== "" && (
          <>
            <PayloadFields
              task={task}
              tasks={tasks}
              payload={payload}
              filled={filled}
              onChange={setPayload}
              problem={at}
            />
            <JobOptions
              of="job"
              options={options}
              onChange={setOptions}
              problem={at}
              key={`options ${filled}`}
            />
          </>
        )}
        <SubmitRow label="Submit the job" route="POST /jobs" off={busy || task === ""} back={to(["jobs"])} />
      </form>
    </Page>
  );
}
