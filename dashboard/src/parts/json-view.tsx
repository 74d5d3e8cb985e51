import { useState } from "preact/hooks";
import { count } from "./format.ts";

/** More is shown when somebody asks: megabytes of text would make the page slow. */
const SHOWN_MAX = 20_000;

export function JsonView({ value, label }: { value: unknown; label: string }) {
  const [all, setAll] = useState(false);
  const text = JSON.stringify(value, null, 2) ?? "null";
  const cut = !all && text.length > SHOWN_MAX;
  return (
    <>
      <pre class="code" tabIndex={0} role="region" aria-label={label}>
        <code>{cut ? text.slice(0, SHOWN_MAX) : text}</code>
      </pre>
      {cut && (
        <button type="button" class="small" onClick={() => setAll(true)}>
          Show all {count(text.length)} characters
        </button>
      )}
    </>
  );
}
