/** When a schedule fires: typed as cron or as an interval, and told back in words with the next times. */

import { useEffect, useState } from "preact/hooks";
import type { AnswerOf } from "../../../src/api/operation-table.ts";
import { call } from "../api/call.ts";
import { asProblem } from "../api/problem.ts";
import type { Problem } from "../api/problem.ts";
import { planned } from "../parts/format.ts";
import { ProblemNote, sentence } from "../parts/notes.tsx";
import { Field, messageAt } from "../parts/schema-form.tsx";
import type { FieldProblem } from "../parts/schema-form.tsx";
import { timingOf, UNITS } from "./schedule-draft.ts";
import type { Draft, Unit } from "./schedule-draft.ts";

/** Somebody who types is not asked about every letter. */
const PAUSE_MS = 250;
const FIRES = 5;
const KINDS = [
  ["cron", "At times of day (cron)"],
  ["every", "At an interval"],
] as const;

interface Props {
  readonly draft: Draft;
  readonly onChange: (part: Partial<Draft>) => void;
  readonly problem: FieldProblem | null;
}

export function TimingFields({ draft, onChange, problem }: Props) {
  const { told, refused } = useMeaning(draft);
  const wrong = refused?.field ? { field: refused.field, message: refused.message } : problem;
  return (
    <fieldset class="bare">
      <legend class="unseen">When it fires</legend>
      <div class="row">
        {KINDS.map(([kind, words]) => (
          <label key={kind} class="inline">
            <input
              type="radio"
              name="kind"
              checked={draft.kind === kind}
              onChange={() => onChange({ kind })}
            />{" "}
            {words}
          </label>
        ))}
      </div>
      {draft.kind === "cron" ? (
        <div class="fields">
          <Field
            label="Cron expression"
            required
            hint="minute, hour, day, month, weekday"
            error={messageAt(wrong, "cron", false)}
          >
            {({ id, describedBy }) => (
              <input
                id={id}
                class="mono"
                required
                autocomplete="off"
                spellcheck={false}
                aria-describedby={describedBy}
                value={draft.cron}
                onInput={({ currentTarget }) => onChange({ cron: currentTarget.value })}
              />
            )}
          </Field>
          <Field label="Time zone" hint="UTC if it is empty" error={messageAt(wrong, "zone", false)}>
            {({ id, describedBy }) => (
              <>
                <input
                  id={id}
                  list="zones"
                  autocomplete="off"
                  spellcheck={false}
                  aria-describedby={describedBy}
                  value={draft.zone}
                  onInput={({ currentTarget }) => onChange({ zone: currentTarget.value })}
                />
                <datalist id="zones">
                  {Intl.supportedValuesOf("timeZone").map((zone) => (
                    <option key={zone} value={zone} />
                  ))}
                </datalist>
              </>
            )}
          </Field>
        </div>
      ) : (
        <div class="fields">
          <Field label="Every" required error={messageAt(wrong, "every_ms", false)}>
            {({ id, describedBy }) => (
              <input
                id={id}
                type="number"
                required
                step="any"
                min="0"
                aria-describedby={describedBy}
                value={draft.every ?? ""}
                onInput={({ currentTarget: { valueAsNumber } }) =>
                  onChange({ every: Number.isNaN(valueAsNumber) ? null : valueAsNumber })
                }
              />
            )}
          </Field>
          <Field label="Unit">
            {({ id }) => (
              <select
                id={id}
                value={draft.unit}
                onChange={({ currentTarget }) => onChange({ unit: currentTarget.value as Unit })}
              >
                {Object.keys(UNITS).map((unit) => (
                  <option key={unit} value={unit}>
                    {unit}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
      )}
      <div class="meaning" role="status" aria-live="polite">
        {refused && !refused.field && <ProblemNote problem={refused} />}
        {told && !refused && (
          <>
            <p>
              <strong>{sentence(told.in_words)}</strong>
            </p>
            <ol class="num muted">
              {told.fires.map((at) => (
                <li key={at}>{planned(Date.parse(at))}</li>
              ))}
            </ol>
          </>
        )}
      </div>
    </fieldset>
  );
}

interface Meaning {
  readonly told: AnswerOf<"POST /schedules/preview"> | null;
  readonly refused: Problem | null;
}

/** What the node makes of it, a moment after the last letter. */
function useMeaning(draft: Draft): Meaning {
  const [meaning, setMeaning] = useState<Meaning>({ told: null, refused: null });
  const key = JSON.stringify(timingOf(draft));
  useEffect(() => {
    const timing = timingOf(draft);
    if (!timing) return setMeaning({ told: null, refused: null });
    const left = new AbortController();
    const ask = async (): Promise<void> => {
      try {
        const body = { ...timing, count: FIRES };
        const told = await call("POST /schedules/preview", { body }, { signal: left.signal });
        setMeaning({ told, refused: null });
      } catch (error) {
        if (!left.signal.aborted) setMeaning(({ told }) => ({ told, refused: asProblem(error) }));
      }
    };
    const timer = setTimeout(() => void ask(), PAUSE_MS);
    return () => {
      clearTimeout(timer);
      left.abort();
    };
  }, [key]);
  return meaning;
}
