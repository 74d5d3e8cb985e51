/** A form for a schedule: a new one, or a stored one. It explains the timing while it is typed. */

import { useEffect, useState } from "preact/hooks";
import type { ScheduleRequestBody } from "../../../src/api/bodies/schedule-body.ts";
import { MISSED_POLICIES, OVERLAP_POLICIES } from "../../../src/core/schedules/schedule.ts";
import { call } from "../api/call.ts";
import { Problem } from "../api/problem.ts";
import { useResource } from "../api/resource.ts";
import { ProblemNote, ResourceNote } from "../parts/notes.tsx";
import { ChoiceField, messageAt, TextField } from "../parts/schema-form.tsx";
import { beginWith } from "../parts/schema.ts";
import { useSubmission } from "../parts/submission.ts";
import { go, place, to } from "../route.ts";
import { Page } from "../shell/page.tsx";
import { said } from "../shell/toasts.tsx";
import { JobOptions, type Options } from "./job-options.tsx";
import { type Draft, draftOf, EMPTY, MISSED_WORDS, OVERLAP_WORDS, requestOf } from "./schedule-draft.ts";
import { TimingFields } from "./schedule-timing.tsx";
import { PayloadFields, SubmitRow, TaskPicker, useTasks } from "./task-form.tsx";

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
        <ResourceNote of={stored} what="this schedule" />
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
    said(name === null ? `${draft.name} created.` : `${draft.name} is changed.`);
    go(["schedules", draft.name]);
  });
  const placed =
    at !== null &&
    /^(?:name|task|payload|cron|every_ms|zone|queue|priority|max_attempts|timeout_ms)\b/.test(at.field);
  const options = draft.options as Options;
  return (
    <Page title={name === null ? "New schedule" : `Change ${name}`}>
      {problem && !placed && <ProblemNote problem={problem} />}
      <form class="form" onSubmit={onSubmit}>
        <TextField
          label="Name"
          required
          hint={
            name === null
              ? "e.g. nightly-report: letters, digits and . _ -"
              : "A name cannot be changed; create another schedule."
          }
          error={messageAt(at, "name", false)}
          value={draft.name}
          onChange={(text) => change({ name: text.trim() })}
          input={{ readOnly: name !== null }}
        />
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
          <ChoiceField
            label="Missed times"
            hint="while there was no leader, or when it was too late"
            value={draft.missed}
            options={MISSED_POLICIES.map((each) => [each, MISSED_WORDS[each]])}
            onChange={(missed) => change({ missed })}
          />
          <ChoiceField
            label="If one still runs"
            hint="when it is time for the next"
            value={draft.overlap}
            options={OVERLAP_POLICIES.map((each) => [each, OVERLAP_WORDS[each]])}
            onChange={(overlap) => change({ overlap })}
          />
        </div>
        <JobOptions
          of="schedule"
          options={options}
          onChange={(next) => change({ options: next })}
          problem={at}
        />
        <SubmitRow
          label={name === null ? "Create schedule" : "Save the changes"}
          route="PUT /schedules/{name}"
          off={busy || draft.name === "" || draft.task === ""}
          back={to(name === null ? ["schedules"] : ["schedules", name])}
        />
      </form>
    </Page>
  );
}

/** Does not replace another schedule by mistake. */
async function store(name: string, body: ScheduleRequestBody, fresh: boolean): Promise<void> {
  if (fresh && (await call("GET /schedules")).schedules.some((each) => each.name === name)) {
    const message = "There is a schedule of that name already; change that one, or choose another name.";
    throw new Problem("EXISTS", message, { field: "name" });
  }
  await call("PUT /schedules/{name}", { params: { name }, body });
}
