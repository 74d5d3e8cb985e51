import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import type { Guarded } from "../api/permissions.ts";
import { barredFrom } from "../api/session.ts";
import { confirm } from "../shell/confirm.tsx";
import type { Question } from "../shell/confirm.tsx";
import { failed, said } from "../shell/toasts.tsx";

export interface ActionProps {
  /** What is done with it, and so what it takes to be allowed to. */
  readonly route: Guarded;
  readonly run: () => Promise<string | null>;
  /** Of what went wrong: "Pausing emails". */
  readonly doing: string;
  readonly ask?: Question;
  /** Why it makes no sense now. */
  readonly off?: string | null;
  readonly class?: string;
  readonly label?: string;
  readonly children: ComponentChildren;
}

/** A button that changes something: asks first if it should, cannot be pressed twice, and says how it went. */
export function Action({
  route,
  run,
  doing,
  ask,
  off = null,
  class: extra = "",
  label,
  children,
}: ActionProps) {
  const [busy, setBusy] = useState(false);
  const reason = useId();
  const why = barredFrom(route) ?? off;
  const press = async (): Promise<void> => {
    if (ask && !(await confirm(ask))) return;
    setBusy(true);
    try {
      const text = await run();
      if (text) said(text);
    } catch (error) {
      failed(doing, error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <button
        type="button"
        class={extra}
        disabled={busy || why !== null}
        title={why ?? undefined}
        aria-label={label}
        aria-describedby={why === null ? undefined : reason}
        onClick={() => void press()}
      >
        {children}
      </button>
      {why !== null && (
        <span id={reason} class="unseen">
          {why}
        </span>
      )}
    </>
  );
}
