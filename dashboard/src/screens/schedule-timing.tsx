/** When a schedule fires: typed as cron or as an interval, and explained in words with the next times. */

import { useEffect, useState } from "preact/hooks";
import type { AnswerOf } from "../../../src/api/operation-table.ts";
import { call } from "../api/call.ts";
import { asProblem, type Problem } from "../api/problem.ts";
import { Check } from "../parts/check.tsx";
import { planned } from "../parts/format.ts";
import { ProblemNote, sentence } from "../parts/notes.tsx";
import { ChoiceField, type FieldProblem, messageAt, TextField } from "../parts/schema-form.tsx";
import { type Draft, timingOf, type Unit, UNITS } from "./schedule-draft.ts";

/** While a person types, not every letter is sent. */
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
          <Check
            key={kind}
            type="radio"
            name="kind"
            label={words}
            checked={draft.kind === kind}
            onChange={() => onChange({ kind })}
          />
        ))}
      </div>
      {draft.kind === "cron" ? (
        <div class="fields">
          <TextField
            label="Cron expression"
            required
            hint="minute, hour, day, month, weekday"
            error={messageAt(wrong, "cron", false)}
            value={draft.cron}
            onChange={(cron) => onChange({ cron })}
            input={{ class: "mono" }}
          />
          <TextField
            label="Time zone"
            hint="UTC if it is empty"
            error={messageAt(wrong, "zone", false)}
            value={draft.zone}
            onChange={(zone) => onChange({ zone })}
            input={{ list: "zones" }}
          />
          <datalist id="zones">
            {Intl.supportedValuesOf("timeZone").map((zone) => (
              <option key={zone} value={zone} />
            ))}
          </datalist>
        </div>
      ) : (
        <div class="fields">
          <TextField
            label="Every"
            required
            error={messageAt(wrong, "every_ms", false)}
            value={draft.every === null ? "" : String(draft.every)}
            onChange={(text) => onChange({ every: text === "" ? null : Number(text) })}
            input={{ type: "number", step: "any", min: "0" }}
          />
          <ChoiceField
            label="Unit"
            value={draft.unit}
            options={(Object.keys(UNITS) as Unit[]).map((unit) => [unit, unit])}
            onChange={(unit) => onChange({ unit })}
          />
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

type Told = AnswerOf<"POST /schedules/preview">;
const NOTHING = { told: null, refused: null };

/** The explanation of the node, a moment after the last letter. */
function useMeaning(draft: Draft) {
  const [meaning, setMeaning] = useState<{ told: Told | null; refused: Problem | null }>(NOTHING);
  const key = JSON.stringify(timingOf(draft));
  useEffect(() => {
    const timing = timingOf(draft);
    if (!timing) return setMeaning(NOTHING);
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
