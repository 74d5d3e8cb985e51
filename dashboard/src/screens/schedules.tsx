/** The list of schedules. */

import type { ScheduleBody } from "../../../src/api/bodies/schedule-body.ts";
import { useResource } from "../api/resource.ts";
import { Action } from "../parts/action.tsx";
import { JobLink } from "../parts/links.tsx";
import { Empty, ResourceNote } from "../parts/notes.tsx";
import { Status } from "../parts/status.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";
import { to } from "../route.ts";
import { Page } from "../shell/page.tsx";

export function SchedulesScreen() {
  const schedules = useResource("GET /schedules", {}, { everyMs: 10_000 });
  return (
    <Page
      title="Schedules"
      about="Scheduled jobs: one job for each time, whichever node leads."
      actions={
        <a class="button primary" href={to(["schedules"], { form: "new" })}>
          New schedule
        </a>
      }
    >
      <ResourceNote of={schedules} what="schedules" />
      <Table
        label="Schedules"
        rows={schedules.data?.schedules}
        keyOf={({ name }) => name}
        columns={columns(schedules.reload)}
        empty={
          <Empty
            title="There are no schedules yet"
            command="baton schedules add nightly hello --cron '30 2 * * *' --zone Europe/Berlin"
          >
            A schedule submits a job at fixed times, once for each of them. Create one with{" "}
            <a href={to(["schedules"], { form: "new" })}>New schedule</a>, or from a terminal.
          </Empty>
        }
      />
    </Page>
  );
}

function columns(reload: () => void): readonly Column<ScheduleBody>[] {
  return [
    ["Schedule", ({ name }) => <a href={to(["schedules", name])}>{name}</a>],
    [
      "When",
      ({ in_words: words, cron, zone }) => (
        <>
          {words}
          {cron !== null && (
            <div class="muted mono">
              {cron} {zone}
            </div>
          )}
        </>
      ),
      "wide-cell",
    ],
    ["Task", ({ task }) => task],
    [
      "Next",
      ({ paused, next_at: at }) => (paused ? <span class="muted">–</span> : <Ago at={at} none="never" />),
    ],
    [
      "Last",
      ({ last_fired_at: at, last_job_id: id }) => (
        <>
          <Ago at={at} none="never" /> {id !== null && <JobLink id={id} />}
        </>
      ),
    ],
    ["State", ({ paused }) => <Status word={paused ? "paused" : "active"} />],
    [
      "",
      (schedule) => (
        <span class="row end">
          <ScheduleActions schedule={schedule} onChange={reload} />
        </span>
      ),
      "right",
    ],
  ];
}

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
      <Action
        route={paused ? "POST /schedules/{name}/resume" : "POST /schedules/{name}/pause"}
        label={`${paused ? "Resume" : "Pause"} ${name}`}
        done={paused ? `${name} fires again.` : `${name} is paused; its occurrences are skipped.`}
        {...shared}
      >
        {paused ? "Resume" : "Pause"}
      </Action>
    </>
  );
}
