/** A button that changes something: asks first if it should, cannot be pressed twice, and says how it went. */

import { useId, useState } from "preact/hooks";
import type { Route } from "../../../src/api/operation-table.ts";
import { call } from "../api/call.ts";
import { barredFrom } from "../api/session.ts";
import { confirm, type Question } from "../shell/confirm.tsx";
import { failed, said } from "../shell/toasts.tsx";

export interface ActionProps {
  /** What it calls, and so which permission it needs. */
  readonly route: Route;
  readonly send: object;
  /** What is said when it is done. */
  readonly done: string | ((answer: never) => string);
  readonly onDone: () => void;
  /** With a label, the question and its button say it unless they say otherwise. */
  readonly ask?: Pick<Question, "body"> & Partial<Question>;
  /** Why it makes no sense now. */
  readonly off?: string | null;
  readonly class?: string;
  readonly label?: string;
  readonly children: string;
}

export function Action(props: ActionProps) {
  const { route, send, done, onDone, ask, off = null, class: extra = "", label, children } = props;
  const [busy, setBusy] = useState(false);
  const reason = useId();
  const why = barredFrom(route) ?? off;
  const press = async (): Promise<void> => {
    if (ask && !(await confirm({ title: `${label}?`, action: `${label}`, ...ask }))) return;
    setBusy(true);
    try {
      const answer = await (call as (route: string, request: object) => Promise<unknown>)(route, send);
      onDone();
      said(typeof done === "string" ? done : done(answer as never));
    } catch (error) {
      failed(label ?? children.replace("…", ""), error);
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
