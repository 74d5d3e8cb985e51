import type { ScheduleBody } from "../../../src/api/bodies/schedule-body.ts";
import { Action } from "../parts/action.tsx";

export function ScheduleActions({ schedule, onChange }: { schedule: ScheduleBody; onChange: () => void }) {
  const { name, paused, task } = schedule;
  const shared = { send: { params: { name } }, onDone: onChange, class: "small" };
  return (
    <>
      <Action
        route="POST /schedules/{name}/trigger"
        label={`Run now: ${name}`}
        done={({ job_id: id }: { job_id: string }) => `Submitted ${id}.`}
        ask={{
          title: `Run ${name} now?`,
          body: `A job of ${task} is submitted at once, outside the schedule. The schedule does not change.`,
          action: "Run it now",
        }}
        {...shared}
      >
        Run now…
      </Action>
      {paused ? (
        <Action
          route="POST /schedules/{name}/resume"
          label={`Resume ${name}`}
          done={`${name} fires again.`}
          {...shared}
        >
          Resume
        </Action>
      ) : (
        <Action
          route="POST /schedules/{name}/pause"
          label={`Pause ${name}`}
          done={`${name} is paused; its occurrences are skipped.`}
          {...shared}
        >
          Pause
        </Action>
      )}
    </>
  );
}
