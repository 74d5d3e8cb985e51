/** Sends one request to the node that served the page, and shows its answer as it comes. */

import { useEffect, useRef, useState } from "preact/hooks";
import { TextField } from "../parts/schema-form.tsx";
import { hintOf } from "../parts/schema.ts";
import { routePath } from "../../../src/client/route-request.ts";
import { schemaIn, type ListedOperation } from "./document.ts";
import { exampleOf } from "./example.ts";

/** Where the API is: above this page, whatever the prefix. */
export const API = new URL("../", document.baseURI).href;

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
      const reply = await fetch(addressOf({ method, path, operation }, values), {
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
        <TextField
          label="Body (JSON)"
          value={body}
          onChange={setBody}
          rows={Math.min(16, body.split("\n").length + 1)}
          input={{ class: "mono" }}
        />
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
  { method, path, operation }: ListedOperation,
  values: Readonly<Record<string, string>>,
): URL {
  const inQuery = (operation.parameters ?? []).filter((parameter) => parameter.in === "query");
  const query = Object.fromEntries(inQuery.map(({ name }) => [name, values[name] || undefined]));
  return new URL(routePath(`${method} ${path}`, { params: values, query }).path.slice(1), API);
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
