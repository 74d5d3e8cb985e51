/** The options of a job; all have defaults. The fields are those of core/jobs/job-fields.ts. */

import type { ComponentProps } from "preact";
import { useState } from "preact/hooks";
import type { JobRequestBody } from "../../../src/api/operations/jobs/submit-jobs.ts";
import { FORM_FIELDS, type Fields } from "../../../src/core/jobs/job-fields.ts";
import { type FieldProblem, messageAt, TextField } from "../parts/schema-form.tsx";

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
        {fields.map(({ wire, kind, form }) => {
          const error = messageAt(problem, wire, kind === "texts");
          const value = (options as Fields)[wire];
          return kind === "texts" ? (
            <LinesField
              key={wire}
              {...form}
              error={error}
              first={value}
              onChange={(lines) => set(wire, lines)}
            />
          ) : (
            <TextField
              key={wire}
              {...form}
              error={error}
              value={value === undefined ? "" : String(value)}
              onChange={(text) =>
                set(wire, text === "" ? undefined : kind === "integer" ? Number(text) : text)
              }
              input={kind === "integer" ? { type: "number", step: "any" } : {}}
            />
          );
        })}
      </div>
    </details>
  );
}

/** Whether a problem is with this field, or with a part of it. */
export function isAt(field: string, name: string): boolean {
  return field === name || field.startsWith(`${name}[`) || field.startsWith(`${name}.`);
}

interface LinesFieldProps extends Pick<ComponentProps<typeof TextField>, "label" | "hint" | "error"> {
  readonly first: unknown;
  readonly onChange: (lines: readonly string[] | undefined) => void;
}

/** A list: one text in each line. */
function LinesField({ first, onChange, ...field }: LinesFieldProps) {
  const [text, setText] = useState((first as string[] | undefined)?.join("\n") ?? "");
  const typed = (now: string): void => {
    setText(now);
    const lines = now.split("\n").filter((line) => line !== "");
    onChange(lines.length === 0 ? undefined : lines);
  };
  return <TextField {...field} rows={2} value={text} onChange={typed} />;
}
