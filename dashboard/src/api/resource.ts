/** An answer of the API that is kept fresh while somebody looks at it. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { AnswerOf, Parts, Route } from "../../../src/api/operation-table.ts";
import { call } from "./call.ts";
import { pulse } from "./live.ts";
import { asProblem, type Problem } from "./problem.ts";

export interface Resource<Answer> {
  /** The last good answer, also while a newer one is on its way or failed. */
  readonly data: Answer | null;
  readonly problem: Problem | null;
  readonly reload: () => void;
}

export interface ResourceOptions {
  /** Parts again at most so often when there is news; never by itself if it is null. */
  readonly freshMs?: number | null;
  /** Parts again also without news, for what changes silently. */
  readonly everyMs?: number;
}

const FRESH_MS = 2_000;

interface State<Answer> extends Omit<Resource<Answer>, "reload"> {
  readonly key: string;
}

/** Null as the route: nothing is asked. */
export function useResource<R extends Route>(
  route: R | null,
  parts: Parts<R> = {},
  options: ResourceOptions = {},
): Resource<AnswerOf<R>> {
  const { freshMs = FRESH_MS, everyMs } = options;
  const key = `${route} ${JSON.stringify(parts)}`;
  const [state, setState] = useState<State<AnswerOf<R>>>({ key, data: null, problem: null });
  const reload = useRef<() => void>(() => {});

  useEffect(() => {
    if (route === null) return setState({ key, data: null, problem: null });
    const left = new AbortController();
    let asking = false;
    let askedAt = 0;
    let again: ReturnType<typeof setTimeout> | null = null;
    /** What is known of the same question stays. */
    const keep = (problem: Problem | null): void =>
      setState((before) => ({ key, data: before.key === key ? before.data : null, problem }));
    keep(null);

    const ask = async (): Promise<void> => {
      if (asking) return;
      asking = true;
      askedAt = Date.now();
      try {
        const data = await call(route, parts, { signal: left.signal });
        if (!left.signal.aborted) setState({ key, data, problem: null });
      } catch (error) {
        if (!left.signal.aborted) keep(asProblem(error));
      } finally {
        asking = false;
      }
    };
    /** As soon as it is allowed; never two at the same time. */
    const soon = (): void => {
      if (freshMs === null || again !== null) return;
      const waitMs = Math.max(0, askedAt + freshMs - Date.now());
      again = setTimeout(() => {
        again = null;
        void ask();
      }, waitMs);
    };

    void ask();
    reload.current = () => void ask();
    let first = true;
    const unsubscribe = pulse.subscribe(() => {
      if (!first) soon();
      first = false;
    });
    const timer = everyMs && setInterval(() => document.visibilityState === "visible" && void ask(), everyMs);
    return () => {
      left.abort();
      unsubscribe();
      clearTimeout(again ?? undefined);
      clearInterval(timer);
    };
  }, [key, freshMs, everyMs]);

  // What belongs to another question is not shown as the answer to this one.
  const shown = state.key === key ? state : { data: null, problem: null };
  return { ...shown, reload: () => reload.current() };
}
