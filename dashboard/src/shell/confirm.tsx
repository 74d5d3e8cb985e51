/** Asks before something is done that others will feel. */

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Dialog } from "./dialog.tsx";

export interface Question {
  readonly title: string;
  readonly body: ComponentChildren;
  /** As on the button: "Drain node-a". */
  readonly action: string;
  readonly danger?: boolean;
}

const asked = signal<(Question & { answer: (yes: boolean) => void }) | null>(null);

export function confirm(question: Question): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  asked.value = { ...question, answer: resolve };
  return promise.finally(() => {
    asked.value = null;
  });
}

export function ConfirmDialog() {
  const question = asked.value;
  if (!question) return null;
  const { title, body, action, danger, answer } = question;
  return (
    <Dialog title={title} onClose={() => answer(false)}>
      <div class="dialog-body">{body}</div>
      <div class="row end">
        <button type="button" onClick={() => answer(false)}>
          Cancel
        </button>
        <button type="button" class={danger ? "danger" : "primary"} onClick={() => answer(true)}>
          {action}
        </button>
      </div>
    </Dialog>
  );
}
