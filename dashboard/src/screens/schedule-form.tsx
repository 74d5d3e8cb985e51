/** A form for a schedule: a new one, or one that is there. What its timing means is said while it is typed. */

import { useEffect, useState } from "preact/hooks";
import type { ScheduleRequestBody } from "../../../src/api/bodies/schedule-body.ts";
import { MISSED_POLICIES, OVERLAP_POLICIES } from "../../../src/core/schedules/schedule.ts";
import { call } from "../api/call.ts";
import { Problem } from "../api/problem.ts";
import { useResource } from "../api/resource.ts";
import { barredFrom } from "../api/session.ts";
import { Loading, ProblemNote } from "../parts/notes.tsx";
import { Field, messageAt } from "../parts/schema-form.tsx";
import { beginWith } from "../parts/schema.ts";
import { useSubmission } from "../parts/submission.ts";
import { go, place, to } from "../route.ts";
import { Page } from "../shell/page.tsx";
import { said } from "../shell/toasts.tsx";
import { JobOptions } from "./job-options.tsx";
import type { Options } from "./job-options.tsx";
import { draftOf, EMPTY, requestOf } from "./schedule-draft.ts";
import type { Draft } from "./schedule-draft.ts";
import { TimingFields } from "./schedule-timing.tsx";
import { MISSED_WORDS, OVERLAP_WORDS } from "./schedule-words.ts";
import { PayloadFields, TaskPicker, useTasks } from "./task-form.tsx";

export function ScheduleFormScreen() {
  const { name } = place.value.query;
  const stored = useResource(
    name ? "GET /schedules/{name}" : null,
    { params: { name: name ?? "" } },
    { freshMs: null },
  );
  if (name && !stored.data) {
    return (
      <Page title={`Change ${name}`}>
        {stored.problem ? (
          <ProblemNote problem={stored.problem} retry={stored.reload} />
        ) : (
          <Loading what="this schedule" />
        )}
      </Page>
    );
  }
  return <Form key={name ?? ""} name={name ?? null} first={stored.data ? draftOf(stored.data) : EMPTY} />;
}

function Form({ name, first }: { name: string | null; first: Draft }) {
  const [draft, setDraft] = useState(first);
  const [filled, setFilled] = useState(0);
  const tasks = useTasks(draft.task);
  const change = (part: Partial<Draft>): void => setDraft((before) => ({ ...before, ...part }));
  const fill = (payload: unknown): void => {
    change({ payload });
    setFilled((count) => count + 1);
  };
  useEffect(() => {
    if (tasks.schema && draft.payload === undefined) fill(beginWith(tasks.schema));
  }, [tasks.schema]);

  const { onSubmit, busy, problem, at, forget } = useSubmission(async () => {
    await store(draft.name, requestOf(draft), name === null);
    said(name === null ? `${draft.name} is planned.` : `${draft.name} is changed.`);
    go(["schedules", draft.name]);
  });
  const placed =
    at !== null &&
    /^(?:name|task|payload|cron|every_ms|zone|queue|priority|max_attempts|timeout_ms)\b/.test(at.field);
  const barred = barredFrom("PUT /schedules/{name}");
  const options = draft.options as Options;
  return (
    <Page title={name === null ? "New schedule" : `Change ${name}`}>
      {problem && !placed && <ProblemNote problem={problem} />}
      <form class="form" onSubmit={onSubmit}>
        <Field
          label="Name"
          required
          hint={
            name === null ? "As nightly-report: letters, digits and . _ -" : "A name stays; make another one."
          }
          error={messageAt(at, "name", false)}
        >
          {({ id, describedBy }) => (
            <input
              id={id}
              required
              readOnly={name !== null}
              autocomplete="off"
              spellcheck={false}
              aria-describedby={describedBy}
              value={draft.name}
              onInput={({ currentTarget }) => change({ name: currentTarget.value.trim() })}
            />
          )}
        </Field>
        <TimingFields draft={draft} onChange={change} problem={at} />
        <TaskPicker
          task={draft.task}
          names={tasks.names}
          problem={at}
          onChange={(task) => {
            if (task === draft.task) return;
            forget();
            change({ task });
            fill(undefined);
          }}
        />
        {draft.task !== "" && (
          <PayloadFields
            task={draft.task}
            tasks={tasks}
            payload={draft.payload}
            filled={filled}
            onChange={(payload) => change({ payload })}
            problem={at}
          />
        )}
        <div class="fields">
          <Field label="Missed times" hint="when nobody led, or it was too late">
            {({ id, describedBy }) => (
              <select
                id={id}
                aria-describedby={describedBy}
                value={draft.missed}
                onChange={({ currentTarget: { value } }) =>
                  change({ missed: MISSED_POLICIES.find((each) => each === value) ?? draft.missed })
                }
              >
                {MISSED_POLICIES.map((each) => (
                  <option key={each} value={each}>
                    {MISSED_WORDS[each]}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="If one still runs" hint="when it is time for the next">
            {({ id, describedBy }) => (
              <select
                id={id}
                aria-describedby={describedBy}
                value={draft.overlap}
                onChange={({ currentTarget: { value } }) =>
                  change({ overlap: OVERLAP_POLICIES.find((each) => each === value) ?? draft.overlap })
                }
              >
                {OVERLAP_POLICIES.map((each) => (
                  <option key={each} value={each}>
                    {OVERLAP_WORDS[each]}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
        <JobOptions
          of="schedule"
          options={options}
          onChange={(next) => change({ options: next })}
          problem={at}
        />
        <div class="row">
          <button
            type="submit"
            class="primary"
            disabled={busy || draft.name === "" || draft.task === "" || barred !== null}
            title={barred ?? undefined}
          >
            {name === null ? "Make the schedule" : "Save the changes"}
          </button>
          <a class="button" href={name === null ? to(["schedules"]) : to(["schedules", name])}>
            Back
          </a>
        </div>
        {barred && <p class="muted">{barred}</p>}
      </form>
    </Page>
  );
}

/** A name that is taken is not taken over by mistake. */
async function store(name: string, body: ScheduleRequestBody, fresh: boolean): Promise<void> {
  const params = { name };
  if (fresh && (await exists(name))) {
    throw new Problem(
      "EXISTS",
      "There is a schedule of that name already; change that one, or take another.",
      {
        field: "name",
      },
    );
  }
  await call("PUT /schedules/{name}", { params, body });
}

async function exists(name: string): Promise<boolean> {
  const { schedules } = await call("GET /schedules");
  return schedules.some((each) => each.name === name);
}
