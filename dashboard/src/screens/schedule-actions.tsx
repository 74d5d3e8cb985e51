import type { ScheduleBody } from "../../../src/api/bodies/schedule-body.ts";
import { call } from "../api/call.ts";
import { Action } from "../parts/action.tsx";

export function ScheduleActions({ schedule, onChange }: { schedule: ScheduleBody; onChange: () => void }) {
  const { name, paused, task } = schedule;
  const params = { name };
  return (
    <>
      <Action
        route="POST /schedules/{name}/trigger"
        doing={`Running ${name}`}
        class="small"
        label={`Run now: ${name}`}
        ask={{
          title: `Run ${name} now?`,
          body: `A job of ${task} is submitted at once, beside the plan. The plan does not change.`,
          action: "Run it now",
        }}
        run={async () => {
          const { job_id } = await call("POST /schedules/{name}/trigger", { params });
          onChange();
          return `Submitted ${job_id}.`;
        }}
      >
        Run now…
      </Action>
      {paused ? (
        <Action
          route="POST /schedules/{name}/resume"
          doing={`Resuming ${name}`}
          class="small"
          label={`Resume ${name}`}
          run={async () => {
            await call("POST /schedules/{name}/resume", { params });
            onChange();
            return `${name} fires again.`;
          }}
        >
          Resume
        </Action>
      ) : (
        <Action
          route="POST /schedules/{name}/pause"
          doing={`Pausing ${name}`}
          class="small"
          label={`Pause ${name}`}
          run={async () => {
            await call("POST /schedules/{name}/pause", { params });
            onChange();
            return `${name} is paused; its occurrences are passed over.`;
          }}
        >
          Pause
        </Action>
      )}
    </>
  );
}
