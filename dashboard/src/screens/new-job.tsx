/** A form for a new job, made from the schema of its task. */

import { useEffect, useState } from "preact/hooks";
import type { JobRequestBody, SubmittedBody } from "../../../src/api/operations/submit.ts";
import { call } from "../api/call.ts";
import { asProblem } from "../api/problem.ts";
import type { Problem } from "../api/problem.ts";
import { useResource } from "../api/resource.ts";
import { barredFrom } from "../api/session.ts";
import { ProblemNote } from "../parts/notes.tsx";
import { Field, JsonField, messageAt, SchemaField } from "../parts/schema-form.tsx";
import { beginWith, controlFor } from "../parts/schema.ts";
import type { Schema } from "../parts/schema.ts";
import { go, place, refine, to } from "../route.ts";
import { Page } from "../shell/page.tsx";
import { said } from "../shell/toasts.tsx";
import { JobOptions } from "./job-options.tsx";
import type { Options } from "./job-options.tsx";

export function NewJobScreen() {
  const { task = "", clone } = place.value.query;
  const here = useResource("GET /tasks", {}, { freshMs: null });
  const nodes = useResource("GET /cluster/nodes", {}, { freshMs: 30_000 }).data?.nodes ?? [];
  const original = useResource(
    clone ? "GET /jobs/{id}" : null,
    { params: { id: clone ?? "" } },
    { freshMs: null },
  );
  const known = here.data?.tasks.find(({ name }) => name === task);
  const schema = (known?.schema ?? null) as Schema | null;

  const [payload, setPayload] = useState<unknown>(undefined);
  const [options, setOptions] = useState<Options>({});
  const [asJson, setAsJson] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  /** Fields that hold a text of their own are made anew when the value is another one. */
  const [filled, setFilled] = useState(0);

  const fill = (value: unknown): void => {
    setPayload(value);
    setFilled((count) => count + 1);
  };
  useEffect(() => {
    const job = original.data;
    if (!job) return;
    refine({ task: job.task });
    const { queue, priority, max_attempts, timeout_ms } = job;
    setOptions({ queue, priority, max_attempts, timeout_ms: timeout_ms ?? undefined });
    fill(job.payload);
  }, [original.data]);
  useEffect(() => {
    if (!clone && schema) fill(beginWith(schema));
  }, [schema]);

  const names = [
    ...new Set([
      ...(here.data?.tasks ?? []).map(({ name }) => name),
      ...nodes.flatMap(({ capabilities }) => capabilities),
    ]),
  ].sort();
  const simple = schema !== null && controlFor(schema).kind !== "json";
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      const body: JobRequestBody = { task, ...options, ...(payload !== undefined && { payload }) };
      const { job_id } = (await call("POST /jobs", { body })) as SubmittedBody;
      said("The job is submitted.");
      go(["jobs", job_id]);
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setBusy(false);
    }
  };
  const at = problem?.field ? { field: problem.field, message: withoutField(problem) } : null;
  const placed =
    at !== null &&
    /^(?:task|payload|queue|priority|run_at|delay_ms|max_attempts|timeout_ms|idempotency_key)\b/.test(
      at.field,
    );
  const barred = barredFrom("POST /jobs");
  return (
    <Page title={clone ? "Clone a job" : "New job"}>
      {original.problem && <ProblemNote problem={original.problem} />}
      {problem && (!placed || problem.field === null) && <ProblemNote problem={problem} />}
      <form class="form" onSubmit={(event) => void submit(event)}>
        <Field
          label="Task"
          required
          error={messageAt(at, "task", false)}
          hint="What is to be run. Nodes of the cluster know these."
        >
          {({ id, describedBy }) => (
            <>
              <input
                id={id}
                list="known-tasks"
                required
                autocomplete="off"
                spellcheck={false}
                aria-describedby={describedBy}
                value={task}
                onChange={({ currentTarget }) => refine({ task: currentTarget.value.trim() })}
              />
              <datalist id="known-tasks">
                {names.map((name) => (
                  <option key={name} value={name} />
                ))}
              </datalist>
            </>
          )}
        </Field>
        {names.length > 0 && (
          <p class="row chips">
            {names.slice(0, 12).map((name) => (
              <button
                key={name}
                type="button"
                class="small"
                aria-pressed={name === task}
                onClick={() => refine({ task: name })}
              >
                {name}
              </button>
            ))}
          </p>
        )}
        <div class="row">
          <h2>Payload</h2>
          {simple && (
            <label class="inline">
              <input
                type="checkbox"
                checked={asJson}
                onChange={({ currentTarget }) => {
                  setAsJson(currentTarget.checked);
                  setFilled((count) => count + 1);
                }}
              />{" "}
              as JSON
            </label>
          )}
        </div>
        {simple && !asJson ? (
          <SchemaField
            key={`form ${task} ${filled}`}
            name="payload"
            path="payload"
            schema={schema}
            required
            value={payload}
            onChange={setPayload}
            problem={at}
          />
        ) : (
          <JsonField
            key={`json ${task} ${filled}`}
            label="Payload as JSON"
            rows={8}
            hint={known && !schema ? "This task has no schema: any JSON value will do." : undefined}
            error={messageAt(at, "payload", true)}
            value={payload}
            onChange={setPayload}
          />
        )}
        <JobOptions options={options} onChange={setOptions} problem={at} key={`options ${filled}`} />
        <div class="row">
          <button
            type="submit"
            class="primary"
            disabled={busy || task === "" || barred !== null}
            title={barred ?? undefined}
          >
            Submit the job
          </button>
          <a href={to(["jobs"])}>Leave it</a>
        </div>
        {barred && <p class="muted">{barred}</p>}
      </form>
    </Page>
  );
}

/** Beside the field its name need not be said again. */
function withoutField({ message, field }: Problem): string {
  return field !== null && message.startsWith(`${field}: `) ? message.slice(field.length + 2) : message;
}
