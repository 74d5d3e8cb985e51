/** What forms for jobs and for schedules have in common: which task, and with which payload. */

import { useState } from "preact/hooks";
import type { Route } from "../../../src/api/operation-table.ts";
import { useResource } from "../api/resource.ts";
import { barredFrom } from "../api/session.ts";
import { Check } from "../parts/check.tsx";
import { type FieldProblem, JsonField, messageAt, SchemaField, TextField } from "../parts/schema-form.tsx";
import { controlFor, type Schema } from "../parts/schema.ts";

export interface KnownTasks {
  /** Null until they are known. */
  readonly names: readonly string[] | null;
  /** Null for a task without one, and for one that this node does not have. */
  readonly schema: Schema | null;
  /** Whether this node has the task, and so knows that there is no schema. */
  readonly here: boolean;
}

export function useTasks(task: string): KnownTasks {
  const here = useResource("GET /tasks", {}, { freshMs: null });
  const nodes = useResource("GET /cluster/nodes", {}, { freshMs: 30_000 });
  const known = here.data?.tasks.find(({ name }) => name === task);
  const names = new Set([
    ...(here.data?.tasks ?? []).map(({ name }) => name),
    ...(nodes.data?.nodes ?? []).flatMap(({ capabilities }) => capabilities),
  ]);
  return {
    names: here.data && nodes.data ? [...names].sort() : null,
    schema: known?.schema ?? null,
    here: known !== undefined,
  };
}

const CHIPS_MAX = 12;

interface TaskPickerProps extends Pick<KnownTasks, "names"> {
  readonly task: string;
  readonly problem: FieldProblem | null;
  readonly onChange: (task: string) => void;
}

export function TaskPicker({ task, names, problem, onChange }: TaskPickerProps) {
  const unknown = task !== "" && names !== null && !names.includes(task);
  return (
    <>
      <TextField
        label="Task"
        required
        error={messageAt(problem, "task", false)}
        hint={
          unknown
            ? "No node knows this task now: its jobs wait until one does."
            : "Choose a task. Available on this cluster:"
        }
        value={task}
        onChange={(text) => {
          // At once if it is a known task, also when it was picked from the list; another when the field is left.
          if (names?.includes(text)) onChange(text);
        }}
        input={{
          list: "known-tasks",
          onChange: ({ currentTarget }) => onChange(currentTarget.value.trim()),
        }}
      />
      <datalist id="known-tasks">
        {(names ?? []).map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      {names !== null && names.length > 0 && (
        <p class="row chips">
          {names.slice(0, CHIPS_MAX).map((name) => (
            <button
              key={name}
              type="button"
              class="small"
              aria-pressed={name === task}
              onClick={() => onChange(name)}
            >
              {name}
            </button>
          ))}
        </p>
      )}
    </>
  );
}

interface PayloadProps {
  readonly task: string;
  readonly tasks: KnownTasks;
  readonly payload: unknown;
  /** Counts how often the payload was replaced as a whole: fields that hold a text of their own are made anew. */
  readonly filled: number;
  readonly onChange: (payload: unknown) => void;
  readonly problem: FieldProblem | null;
}

export function PayloadFields({ task, tasks, payload, filled, onChange, problem }: PayloadProps) {
  const { schema, here } = tasks;
  const [asJson, setAsJson] = useState(false);
  const simple = schema !== null && controlFor(schema).kind !== "json";
  const form = simple && !asJson;
  return (
    <>
      {simple && (
        <div class="row">
          <h2>Payload</h2>
          <Check label="as JSON" checked={asJson} onChange={setAsJson} />
        </div>
      )}
      {form ? (
        <SchemaField
          key={`form ${task} ${filled}`}
          name="payload"
          path="payload"
          schema={schema}
          required
          value={payload}
          onChange={onChange}
          problem={problem}
        />
      ) : (
        <JsonField
          key={`json ${task} ${filled}`}
          label="Payload as JSON"
          rows={8}
          hint={here && !schema ? "This task has no schema: any JSON value will do." : undefined}
          error={messageAt(problem, "payload", true)}
          value={payload}
          onChange={onChange}
        />
      )}
    </>
  );
}

interface SubmitRowProps {
  readonly label: string;
  readonly route: Route;
  readonly off: boolean;
  /** Where one came from. */
  readonly back: string;
}

export function SubmitRow({ label, route, off, back }: SubmitRowProps) {
  const barred = barredFrom(route);
  return (
    <>
      <div class="row">
        <button type="submit" class="primary" disabled={off || barred !== null} title={barred ?? undefined}>
          {label}
        </button>
        <a class="button" href={back}>
          Back
        </a>
      </div>
      {barred && <p class="muted">{barred}</p>}
    </>
  );
}
