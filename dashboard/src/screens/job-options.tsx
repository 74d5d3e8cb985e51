/** The options of a job; all have defaults. The fields are those of core/jobs/job-fields.ts. */

import type { JobRequestBody } from "../../../src/api/operations/jobs/submit-jobs.ts";
import { FORM_FIELDS, type Fields, type JobFieldRow } from "../../../src/core/jobs/job-fields.ts";
import { Field, messageAt } from "../parts/schema-form.tsx";
import type { FieldProblem } from "../parts/schema-form.tsx";

export type Options = Omit<JobRequestBody, "task" | "payload" | "run_at">;

interface Props {
  /** Of a job, or of a schedule's job, which has fewer. */
  readonly of: "job" | "schedule";
  readonly options: Options;
  readonly onChange: (options: Options) => void;
  readonly problem: FieldProblem | null;
}

/** Texts before numbers. */
const ORDERED = [
  ...FORM_FIELDS.filter(({ kind }) => kind !== "integer"),
  ...FORM_FIELDS.filter(({ kind }) => kind === "integer"),
];

/** The options of a job that is there, for another one like it. A key stays with its job. */
export function optionsOf(job: Fields): Options {
  const fields = FORM_FIELDS.filter(({ wire }) => wire !== "idempotency_key" && wire !== "delay_ms");
  const given = fields.map(({ wire }) => [wire, job[wire]]);
  return Object.fromEntries(
    given.filter(([, value]) => value !== null && !(Array.isArray(value) && value.length === 0)),
  ) as Options;
}

export function JobOptions({ of, options, onChange, problem }: Props) {
  const fields = ORDERED.filter(({ scheduled }) => of === "job" || scheduled);
  const set = (name: string, value: unknown): void => {
    const { [name]: _old, ...rest } = options as Fields;
    onChange(value === undefined ? rest : { ...rest, [name]: value });
  };
  const wrong = problem !== null && fields.some(({ wire }) => isAt(problem.field, wire));
  return (
    <details open={wrong || Object.keys(options).length > 0}>
      <summary>Options</summary>
      <div class="fields">
        {fields.map(({ wire, kind, form: { label, hint } }) => (
          <Field key={wire} label={label} hint={hint} error={messageAt(problem, wire, kind === "texts")}>
            {({ id, describedBy }) => (
              <Input
                id={id}
                describedBy={describedBy}
                kind={kind}
                value={(options as Fields)[wire]}
                onChange={(value) => set(wire, value)}
              />
            )}
          </Field>
        ))}
      </div>
    </details>
  );
}

/** Whether a problem is with this field, or with a part of it. */
export function isAt(field: string, name: string): boolean {
  return field === name || field.startsWith(`${name}[`) || field.startsWith(`${name}.`);
}

interface InputProps {
  readonly id: string;
  readonly describedBy: string | undefined;
  readonly kind: JobFieldRow["kind"];
  readonly value: unknown;
  /** Undefined for a field that is left empty. */
  readonly onChange: (value: unknown) => void;
}

function Input({ id, describedBy, kind, value, onChange }: InputProps) {
  if (kind === "texts") {
    return (
      <textarea
        id={id}
        aria-describedby={describedBy}
        spellcheck={false}
        rows={2}
        defaultValue={(value as string[] | undefined)?.join("\n") ?? ""}
        onInput={({ currentTarget }) => {
          const lines = currentTarget.value.split("\n").filter((line) => line !== "");
          onChange(lines.length === 0 ? undefined : lines);
        }}
      />
    );
  }
  if (kind === "integer") {
    return (
      <input
        id={id}
        type="number"
        step="any"
        aria-describedby={describedBy}
        value={(value as number | undefined) ?? ""}
        onInput={({ currentTarget: { valueAsNumber } }) =>
          onChange(Number.isNaN(valueAsNumber) ? undefined : valueAsNumber)
        }
      />
    );
  }
  return (
    <input
      id={id}
      aria-describedby={describedBy}
      spellcheck={false}
      value={(value as string | undefined) ?? ""}
      onInput={({ currentTarget }) => onChange(currentTarget.value || undefined)}
    />
  );
}
