/** Submits a form: one call at a time; a rejected field gets its error message and the focus. */

import { useEffect, useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/problem.ts";
import type { FieldProblem } from "./schema-form.tsx";

export interface Submission {
  readonly onSubmit: (event: SubmitEvent) => void;
  readonly busy: boolean;
  readonly problem: Problem | null;
  /** The problem, if it names a field. */
  readonly at: FieldProblem | null;
  /** Clears the problem. */
  readonly forget: () => void;
}

export function useSubmission(send: () => Promise<void>): Submission {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  // Moves the focus to the first rejected field.
  useEffect(() => {
    if (problem) document.querySelector<HTMLElement>(".field.wrong :is(input, select, textarea)")?.focus();
  }, [problem]);
  const submit = async (): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      await send();
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setBusy(false);
    }
  };
  return {
    onSubmit: (event) => {
      event.preventDefault();
      void submit();
    },
    busy,
    problem,
    at: fieldProblem(problem),
    forget: () => setProblem(null),
  };
}

function fieldProblem(problem: Problem | null): FieldProblem | null {
  if (!problem?.field) return null;
  const { field, message } = problem;
  // The message is shown next to the field, so it does not repeat the field's name.
  return { field, message: message.startsWith(`${field}: `) ? message.slice(field.length + 2) : message };
}
