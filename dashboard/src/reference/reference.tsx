/** The API reference: every operation of the node that served this page, with its schemas, to be tried. */

import { useEffect, useState } from "preact/hooks";
import { TextField } from "../parts/schema-form.tsx";
import { nextTheme, theme } from "../shell/theme.ts";
import { operationsOf, schemaIn, type ApiDocument, type ListedOperation } from "./document.ts";
import { API, RequestForm } from "./request-form.tsx";
import { SchemaView, typeOf } from "./schema-view.tsx";

export function Reference() {
  const [described, setDescribed] = useState<ApiDocument | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [filter, setFilter] = useState("");
  // Kept in memory alone: it is gone when the page is left.
  const [token, setToken] = useState("");
  useEffect(() => {
    loadDocument().then(setDescribed, (error: Error) => setProblem(error.message));
  }, []);

  if (problem !== null) {
    return (
      <p class="note bad" role="alert">
        The description of the API could not be read: {problem}
      </p>
    );
  }
  if (!described) return <p class="loading muted">Asking for openapi.json …</p>;
  const words = filter.toLowerCase().split(/\s+/);
  const shown = operationsOf(described).filter(({ method, path, operation }) => {
    const text = `${method} ${path} ${operation.summary} ${operation.operationId}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  return (
    <main class="reference">
      <header>
        <h1>
          {described.info.title} {described.info.version}: API reference
        </h1>
        <p class="muted">
          {described.info.description} <a href="../openapi.json">openapi.json</a>{" "}
          <button type="button" class="small" onClick={nextTheme}>
            theme: {theme.value}
          </button>
        </p>
      </header>
      <div class="fields">
        <TextField label="Find" value={filter} onChange={setFilter} input={{ type: "search" }} />
        <TextField
          label="Token"
          hint="sent with each request; without one, the session of the dashboard counts"
          value={token}
          onChange={setToken}
          input={{ type: "password" }}
        />
      </div>
      {described.tags.map(({ name, description }) => {
        const ofTag = shown.filter(({ operation }) => operation.tags.includes(name));
        if (ofTag.length === 0) return null;
        return (
          <section key={name}>
            <h2>
              {name} <span class="muted">{description}</span>
            </h2>
            {ofTag.map((listed) => (
              <OperationView key={listed.operation.operationId} {...listed} token={token} />
            ))}
          </section>
        );
      })}
      {shown.length === 0 && <p class="empty">No operation matches “{filter}”.</p>}
    </main>
  );
}

/** Its content is made when it is opened for the first time: all of them at once are tens of thousands of elements. */
function OperationView({ token, ...listed }: ListedOperation & { token: string }) {
  const { method, path, operation } = listed;
  const [opened, setOpened] = useState(false);
  const body = operation.requestBody && schemaIn(operation.requestBody);
  return (
    <details
      class="operation"
      id={operation.operationId}
      onToggle={({ currentTarget }) => setOpened(opened || currentTarget.open)}
    >
      <summary>
        <code class="method">{method}</code> <code>{path}</code>{" "}
        <span class="muted">{operation.summary}</span>
      </summary>
      {opened && (
        <div class="operation-body">
          <p class="muted">
            Needs the permission <code>{operation["x-permission"]}</code>.
          </p>
          <RequestForm {...listed} token={token} />
          {body && (
            <>
              <h3>Body: {typeOf(body)}</h3>
              <SchemaView schema={body} />
            </>
          )}
          {Object.entries(operation.responses).map(([status, response]) => {
            const schema = schemaIn(response);
            return (
              <div key={status}>
                <h3>
                  {status} {schema && typeOf(schema)}
                </h3>
                {schema && <SchemaView schema={schema} />}
              </div>
            );
          })}
        </div>
      )}
    </details>
  );
}

async function loadDocument(): Promise<ApiDocument> {
  const reply = await fetch(new URL("openapi.json", API), { credentials: "same-origin" });
  if (!reply.ok) throw new Error(`the node answered with ${reply.status}`);
  return (await reply.json()) as ApiDocument;
}
