/** Sends one request to the node that served the page, and shows its answer as it comes. */

import { useEffect, useRef, useState } from "preact/hooks";
import { Field, TextField } from "../parts/schema-form.tsx";
import { hintOf } from "../parts/schema.ts";
import { API } from "./address.ts";
import { schemaIn, type ListedOperation } from "./document.ts";
import { exampleOf } from "./example.ts";

interface Answer {
  readonly status: string;
  readonly text: string;
}

/** A stream of events has no end, and a page that holds all of it becomes slow. */
const SHOWN_MAX = 200_000;

export function RequestForm({ method, path, operation, token }: ListedOperation & { token: string }) {
  const { parameters = [], requestBody } = operation;
  const bodySchema = requestBody && schemaIn(requestBody);
  const [values, setValues] = useState<Readonly<Record<string, string>>>({});
  const [body, setBody] = useState(() => (bodySchema ? JSON.stringify(exampleOf(bodySchema), null, 2) : ""));
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [running, setRunning] = useState<AbortController | null>(null);
  const current = useRef<AbortController | null>(null);
  useEffect(() => () => current.current?.abort(), []);

  const send = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const stop = new AbortController();
    setRunning((current.current = stop));
    setAnswer(null);
    try {
      const reply = await fetch(addressOf(path, parameters, values), {
        method,
        credentials: "same-origin",
        signal: stop.signal,
        headers: {
          ...(token !== "" && { authorization: `Bearer ${token}` }),
          ...(bodySchema && body !== "" && { "content-type": "application/json" }),
        },
        body: bodySchema && body !== "" ? body : undefined,
      });
      const status = `${reply.status} ${reply.statusText}`;
      await showParts(reply, (text) => setAnswer({ status, text }));
    } catch (error) {
      if (!stop.signal.aborted) setAnswer({ status: "no answer", text: (error as Error).message });
    } finally {
      setRunning(null);
    }
  };

  return (
    <form class="form" onSubmit={(event) => void send(event)}>
      {parameters.map(({ name, required, description, schema }) => (
        <TextField
          key={name}
          label={name}
          required={required}
          hint={description ?? hintOf(schema)}
          value={values[name] ?? ""}
          onChange={(text) => setValues({ ...values, [name]: text })}
        />
      ))}
      {bodySchema && (
        <Field label="Body (JSON)">
          {({ id }) => (
            <textarea
              id={id}
              class="mono"
              rows={Math.min(16, body.split("\n").length + 1)}
              spellcheck={false}
              value={body}
              onInput={({ currentTarget }) => setBody(currentTarget.value)}
            />
          )}
        </Field>
      )}
      <div class="row">
        <button type="submit" class="primary" disabled={running !== null}>
          Send {method} {path}
        </button>
        {running && (
          <button type="button" onClick={() => running.abort()}>
            Stop
          </button>
        )}
      </div>
      {answer && (
        <pre class="code" tabIndex={0} role="region" aria-label="Answer">
          <code>{`${answer.status}\n\n${answer.text}`}</code>
        </pre>
      )}
    </form>
  );
}

function addressOf(
  path: string,
  parameters: NonNullable<ListedOperation["operation"]["parameters"]>,
  values: Readonly<Record<string, string>>,
): URL {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""));
  const url = new URL(filled.slice(1), API);
  for (const { name, in: place } of parameters) {
    const value = values[name] ?? "";
    if (place === "query" && value !== "") url.searchParams.set(name, value);
  }
  return url;
}

async function showParts(reply: Response, show: (text: string) => void): Promise<void> {
  let text = "";
  show(text);
  if (!reply.body) return;
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return show(formatted(text));
    text = (text + value).slice(-SHOWN_MAX);
    show(text);
  }
}

function formatted(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
