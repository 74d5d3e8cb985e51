/** Short news about what was just done, read aloud to those who cannot see it. */

import { signal } from "@preact/signals";
import { asProblem, remedyFor } from "../api/problem.ts";

interface Toast {
  readonly id: number;
  readonly tone: "good" | "bad";
  readonly text: string;
}

const SHOWN_MS = 6_000;
/** What went wrong takes longer to read, and matters more. */
const SHOWN_BAD_MS = 15_000;

const toasts = signal<readonly Toast[]>([]);
let count = 0;

function show(tone: Toast["tone"], text: string): void {
  const id = ++count;
  toasts.value = [...toasts.value, { id, tone, text }];
  setTimeout(() => dismiss(id), tone === "good" ? SHOWN_MS : SHOWN_BAD_MS);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

export function said(text: string): void {
  show("good", text);
}

export function failed(what: string, error: unknown): void {
  const problem = asProblem(error);
  const remedy = remedyFor(problem);
  show("bad", `${what}: ${problem.message} (${problem.code})${remedy ? ` ${remedy}` : ""}`);
}

export function Toasts() {
  return (
    <div class="toasts" aria-live="polite">
      {toasts.value.map(({ id, tone, text }) => (
        <div key={id} class={`toast ${tone}`}>
          <span>{text}</span>
          <button type="button" class="small quiet" aria-label="Dismiss" onClick={() => dismiss(id)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
