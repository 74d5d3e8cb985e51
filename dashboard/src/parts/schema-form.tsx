import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { bare, controlFor, hintOf } from "./schema.ts";
import type { Schema } from "./schema.ts";

/** What a field is told to be wrong with, and where: `payload.text`. */
export interface FieldProblem {
  readonly field: string;
  readonly message: string;
}

export interface SchemaFieldProps {
  readonly name: string;
  /** As the node names it: `payload.text`. */
  readonly path: string;
  readonly schema: Schema;
  readonly required: boolean;
  readonly value: unknown;
  /** Undefined: left out. */
  readonly onChange: (value: unknown) => void;
  readonly problem: FieldProblem | null;
  readonly depth?: number;
}

export function Field({
  label,
  hint,
  required = false,
  error,
  children,
}: {
  label: string;
  hint?: string;
  required?: boolean;
  error?: string | null;
  children: (ids: { id: string; describedBy: string | undefined }) => ComponentChildren;
}) {
  const id = useId();
  const about = hint || error ? `${id}-about` : undefined;
  return (
    <div class={error ? "field wrong" : "field"}>
      <label for={id}>
        {label}
        {required && <span class="muted"> (required)</span>}
      </label>
      {children({ id, describedBy: about })}
      {about && (
        <p id={about} class="hint">
          {error && <strong class="bad-text">{error} </strong>}
          {hint}
        </p>
      )}
    </div>
  );
}

/** The message of a problem that is this field's, or one inside it that has no field of its own. */
export function messageAt(problem: FieldProblem | null, path: string, inside: boolean): string | null {
  if (!problem) return null;
  const { field, message } = problem;
  const hit = field === path || (inside && (field.startsWith(`${path}.`) || field.startsWith(`${path}[`)));
  return hit ? message : null;
}

export function SchemaField(props: SchemaFieldProps) {
  const { name, path, schema: given, required, value, onChange, problem, depth = 0 } = props;
  const schema = bare(given);
  const control = controlFor(given, depth);
  if (control.kind === "group") return <Group {...props} fields={control.fields} />;
  const error = messageAt(problem, path, control.kind === "json");
  const common = { label: schema.title ?? name, hint: hintOf(given), required, error };
  switch (control.kind) {
    case "text":
      return (
        <Field {...common}>
          {({ id, describedBy }) => {
            const text = typeof value === "string" ? value : "";
            const typed = (event: { currentTarget: { value: string } }): void => {
              const { value: now } = event.currentTarget;
              onChange(now === "" && !required ? undefined : now);
            };
            const shared = {
              id,
              "aria-describedby": describedBy,
              value: text,
              onInput: typed,
              spellcheck: false,
            };
            return control.lines ? <textarea rows={2} {...shared} /> : <input type="text" {...shared} />;
          }}
        </Field>
      );
    case "number":
      return (
        <Field {...common}>
          {({ id, describedBy }) => (
            <input
              type="number"
              id={id}
              aria-describedby={describedBy}
              // The node checks; what it says stands at the field.
              step="any"
              value={typeof value === "number" ? value : ""}
              onInput={({ currentTarget }) =>
                onChange(Number.isNaN(currentTarget.valueAsNumber) ? undefined : currentTarget.valueAsNumber)
              }
            />
          )}
        </Field>
      );
    case "boolean":
      return (
        <Field {...common}>
          {({ id, describedBy }) => (
            <input
              type="checkbox"
              id={id}
              aria-describedby={describedBy}
              checked={value === true}
              onChange={({ currentTarget }) => onChange(currentTarget.checked)}
            />
          )}
        </Field>
      );
    case "choice": {
      const chosen = control.values.indexOf(value);
      return (
        <Field {...common}>
          {({ id, describedBy }) => (
            <select
              id={id}
              aria-describedby={describedBy}
              value={chosen < 0 ? "" : String(chosen)}
              onChange={({ currentTarget }) =>
                onChange(currentTarget.value === "" ? undefined : control.values[Number(currentTarget.value)])
              }
            >
              <option value="">{required ? "choose …" : "left out"}</option>
              {control.values.map((each, index) => (
                <option key={index} value={String(index)}>
                  {typeof each === "string" ? each : JSON.stringify(each)}
                </option>
              ))}
            </select>
          )}
        </Field>
      );
    }
    case "json":
      return <JsonField {...common} value={value} onChange={onChange} />;
  }
}

function Group(props: SchemaFieldProps & { fields: readonly (readonly [string, Schema])[] }) {
  const { name, path, schema, value, onChange, problem, depth = 0, fields } = props;
  const held = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
  const own = messageAt(problem, path, false);
  const set = (key: string, next: unknown): void => {
    const { [key]: _old, ...rest } = held;
    const changed = next === undefined ? rest : { ...held, [key]: next };
    onChange(depth > 0 && !props.required && Object.keys(changed).length === 0 ? undefined : changed);
  };
  return (
    <fieldset class={depth === 0 ? "bare" : undefined}>
      <legend class={depth === 0 ? "unseen" : undefined}>{schema.title ?? name}</legend>
      {own && <p class="bad-text">{own}</p>}
      {fields.map(([key, field]) => (
        <SchemaField
          key={key}
          name={key}
          path={`${path}.${key}`}
          schema={field}
          required={bare(schema).required?.includes(key) === true && field.default === undefined}
          value={held[key]}
          onChange={(next) => set(key, next)}
          problem={problem}
          depth={depth + 1}
        />
      ))}
    </fieldset>
  );
}

export function JsonField({
  label,
  hint,
  required,
  error,
  value,
  onChange,
  rows = 4,
}: {
  label: string;
  hint?: string;
  required?: boolean;
  error?: string | null;
  value: unknown;
  onChange: (value: unknown) => void;
  rows?: number;
}) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value, null, 2));
  const [wrong, setWrong] = useState<string | null>(null);
  const typed = (now: string): void => {
    setText(now);
    if (now.trim() === "") {
      setWrong(null);
      return onChange(undefined);
    }
    try {
      onChange(JSON.parse(now));
      setWrong(null);
    } catch (reason) {
      setWrong(`not JSON yet: ${(reason as Error).message}`);
    }
  };
  return (
    <Field label={label} hint={hint} required={required} error={wrong ?? error ?? null}>
      {({ id, describedBy }) => (
        <textarea
          // Half a value is not sent: the form waits until it can be read.
          ref={(element) => element?.setCustomValidity(wrong ?? "")}
          id={id}
          class="mono"
          rows={rows}
          spellcheck={false}
          aria-describedby={describedBy}
          aria-invalid={wrong !== null}
          value={text}
          onInput={({ currentTarget }) => typed(currentTarget.value)}
        />
      )}
    </Field>
  );
}
