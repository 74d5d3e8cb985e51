/** What a screen says instead of, or above, its content. */

import type { RenderableProps } from "preact";
import { overview } from "../api/live.ts";
import { type Problem, remedyFor } from "../api/problem.ts";
import type { Resource } from "../api/resource.ts";

export function ProblemNote({ problem, retry }: { problem: Problem; retry?: () => void }) {
  const remedy = remedyFor(problem);
  return (
    <div class="note bad" role="alert">
      <p>
        <strong>{sentence(problem.message)}</strong> <span class="muted">({problem.code})</span>
      </p>
      {remedy && <p>{remedy}</p>}
      {retry && (
        <button type="button" class="small" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function sentence(text: string): string {
  return text === "" ? text : text[0]!.toUpperCase() + text.slice(1);
}

interface FromNodes {
  readonly partial?: boolean;
  readonly unreachable?: readonly string[];
  readonly nodes?: readonly { readonly name: string; readonly reachable: boolean }[];
}

/** Some nodes did not answer: what is shown is true, and not all. */
export function PartialNote({ of }: { of: FromNodes | null }) {
  if (!of?.partial) return null;
  const missing = of.unreachable ?? (of.nodes ?? []).flatMap((each) => (each.reachable ? [] : [each.name]));
  // The banner above every screen names them already.
  const named = overview.value?.unreachable ?? [];
  if (missing.length > 0 && missing.every((name) => named.includes(name))) return null;
  return (
    <div class="note wait" role="status">
      <p>
        <strong>Not everything is shown.</strong>{" "}
        {missing.length > 0 ? `No answer from ${missing.join(", ")}.` : "Some nodes did not answer."} What
        they have is missing here until they are back.
      </p>
    </div>
  );
}

/** Nothing here yet, and what to do about it. */
export function Empty({ title, command, children }: RenderableProps<{ title: string; command?: string }>) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children && <div class="muted">{children}</div>}
      {command && (
        <pre class="code">
          <code>{command}</code>
        </pre>
      )}
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <p class="loading muted" role="status">
      Asking for {what} …
    </p>
  );
}

/** What is wrong with a resource, or that it is not there yet. */
export function ResourceNote({ of, what }: { of: Resource<unknown>; what: string }) {
  const { data, problem, reload } = of;
  if (problem) return <ProblemNote problem={problem} retry={reload} />;
  return data ? null : <Loading what={what} />;
}
