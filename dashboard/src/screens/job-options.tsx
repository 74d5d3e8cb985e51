/** How a job is to be run: all of it may be left as it is. */

import type { JobRequestBody } from "../../../src/api/operations/submit.ts";
import { Field, messageAt } from "../parts/schema-form.tsx";
import type { FieldProblem } from "../parts/schema-form.tsx";

export const JOB_OPTIONS = [
  "queue",
  "idempotency_key",
  "priority",
  "delay_ms",
  "max_attempts",
  "timeout_ms",
] as const satisfies readonly (keyof JobRequestBody)[];
type Option = (typeof JOB_OPTIONS)[number];
export type Options = Pick<JobRequestBody, Option>;

interface Props {
  /** Which of them there are here. */
  readonly names: readonly Option[];
  readonly options: Options;
  readonly onChange: (options: Options) => void;
  readonly problem: FieldProblem | null;
}

const NUMBERS = [
  ["priority", "Priority", "from -100 to 100; higher runs first"],
  ["delay_ms", "Delay", "in milliseconds, from now"],
  ["max_attempts", "Attempts", "how often it may fail"],
  ["timeout_ms", "Longest run", "in milliseconds"],
] as const;

const TEXTS = [
  ["queue", "Queue", "what the task says unless you say otherwise"],
  ["idempotency_key", "Idempotency key", "the same key is the same job"],
] as const;

export function JobOptions({ names, options, onChange, problem }: Props) {
  const set = (name: keyof Options, value: string | number | undefined): void => {
    const { [name]: _old, ...rest } = options;
    onChange(value === undefined ? rest : { ...rest, [name]: value });
  };
  const wrong = problem !== null && names.some((name) => name === problem.field);
  return (
    <details open={wrong || Object.keys(options).length > 0}>
      <summary>Options</summary>
      <div class="fields">
        {TEXTS.filter(([name]) => names.includes(name)).map(([name, label, hint]) => (
          <Field key={name} label={label} hint={hint} error={messageAt(problem, name, false)}>
            {({ id, describedBy }) => (
              <input
                id={id}
                aria-describedby={describedBy}
                spellcheck={false}
                value={options[name] ?? ""}
                onInput={({ currentTarget }) => set(name, currentTarget.value || undefined)}
              />
            )}
          </Field>
        ))}
        {NUMBERS.filter(([name]) => names.includes(name)).map(([name, label, hint]) => (
          <Field key={name} label={label} hint={hint} error={messageAt(problem, name, false)}>
            {({ id, describedBy }) => (
              <input
                id={id}
                type="number"
                step="any"
                aria-describedby={describedBy}
                value={options[name] ?? ""}
                onInput={({ currentTarget: { valueAsNumber } }) =>
                  set(name, Number.isNaN(valueAsNumber) ? undefined : valueAsNumber)
                }
              />
            )}
          </Field>
        ))}
      </div>
    </details>
  );
}
