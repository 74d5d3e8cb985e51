import type { ComponentChildren, ComponentProps } from "preact";
import { useId, useState } from "preact/hooks";
import { bare, controlFor, hintOf, type Schema } from "./schema.ts";

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

interface FieldProps {
  readonly label: string;
  readonly hint?: string;
  readonly required?: boolean;
  readonly error?: string | null;
}

export function Field({
  label,
  hint,
  required = false,
  error,
  children,
}: FieldProps & { children: (ids: { id: string; describedBy: string | undefined }) => ComponentChildren }) {
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

interface TextFieldProps extends FieldProps {
  readonly value: string;
  readonly onChange: (text: string) => void;
  /** Of a text that may have several lines. */
  readonly rows?: number;
  readonly input?: ComponentProps<"input"> & ComponentProps<"textarea">;
}

export function TextField({ value, onChange, rows, input, ...field }: TextFieldProps) {
  const Input = rows === undefined ? "input" : "textarea";
  return (
    <Field {...field}>
      {({ id, describedBy }) => (
        <Input
          id={id}
          required={field.required}
          rows={rows}
          autocomplete="off"
          spellcheck={false}
          aria-describedby={describedBy}
          value={value}
          onInput={({ currentTarget }: { currentTarget: { value: string } }) => onChange(currentTarget.value)}
          {...input}
        />
      )}
    </Field>
  );
}

export interface ChoiceFieldProps<Value extends string> extends FieldProps {
  readonly value: Value;
  readonly options: readonly (readonly [Value, string])[];
  readonly onChange: (value: Value) => void;
}

export function ChoiceField<Value extends string>(props: ChoiceFieldProps<Value>) {
  const { value, options, onChange, ...field } = props;
  return (
    <Field {...field}>
      {({ id, describedBy }) => (
        <select
          id={id}
          aria-describedby={describedBy}
          value={value}
          onChange={({ currentTarget }) => onChange(currentTarget.value as Value)}
        >
          {options.map(([each, words]) => (
            <option key={each} value={each}>
              {words}
            </option>
          ))}
        </select>
      )}
    </Field>
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
      // An empty text is a value too: the node checks it, and its answer is shown at the field.
      return (
        <TextField
          {...common}
          value={typeof value === "string" ? value : ""}
          onChange={(text) => onChange(text === "" && !required ? undefined : text)}
          rows={control.lines ? 2 : undefined}
          input={{ required: false }}
        />
      );
    case "number":
      return (
        <TextField
          {...common}
          value={typeof value === "number" ? String(value) : ""}
          onChange={(text) => onChange(text === "" ? undefined : Number(text))}
          input={{ type: "number", step: "any", required: false }}
        />
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
      const options = control.values.map(
        (each, at) => [String(at), typeof each === "string" ? each : JSON.stringify(each)] as const,
      );
      return (
        <ChoiceField
          {...common}
          value={chosen < 0 ? "" : String(chosen)}
          options={[["", required ? "choose …" : "left out"], ...options]}
          onChange={(at) => onChange(at === "" ? undefined : control.values[Number(at)])}
        />
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

interface JsonFieldProps extends FieldProps, Pick<SchemaFieldProps, "value" | "onChange"> {
  readonly rows?: number;
}

export function JsonField({ value, onChange, rows = 4, error, ...field }: JsonFieldProps) {
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
    <TextField
      {...field}
      error={wrong ?? error}
      rows={rows}
      value={text}
      onChange={typed}
      input={{
        class: "mono",
        "aria-invalid": wrong !== null,
        required: false,
        // Half a value is not sent: the form waits until it can be read.
        ref: (element: HTMLInputElement | HTMLTextAreaElement | null) =>
          element?.setCustomValidity(wrong ?? ""),
      }}
    />
  );
}
