/** Jobs by the clock. */

import { useResource } from "../api/resource.ts";
import { JobLink } from "../parts/links.tsx";
import { Empty, Loading, ProblemNote } from "../parts/notes.tsx";
import { Status } from "../parts/status.tsx";
import { Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";
import { to } from "../route.ts";
import { Page } from "../shell/page.tsx";
import { ScheduleActions } from "./schedule-actions.tsx";

export function SchedulesScreen() {
  const { data, problem, reload } = useResource("GET /schedules", {}, { everyMs: 10_000 });
  return (
    <Page
      title="Schedules"
      about="Jobs by the clock: one job for each time, whichever node leads."
      actions={
        <a class="button primary" href={to(["schedules"], { form: "new" })}>
          New schedule
        </a>
      }
    >
      {problem && <ProblemNote problem={problem} retry={reload} />}
      {!data && !problem && <Loading what="schedules" />}
      {data?.schedules.length === 0 && (
        <Empty
          title="There are no schedules yet"
          command="baton schedules add nightly hello --cron '30 2 * * *' --zone Europe/Berlin"
        >
          A schedule submits a job at fixed times, once for each of them. Make one with{" "}
          <a href={to(["schedules"], { form: "new" })}>New schedule</a>, or from a terminal.
        </Empty>
      )}
      {data && data.schedules.length > 0 && (
        <Table
          label="Schedules"
          head={
            <>
              <th>Schedule</th>
              <th>When</th>
              <th>Task</th>
              <th>Next</th>
              <th>Last</th>
              <th>State</th>
              <th>
                <span class="unseen">Actions</span>
              </th>
            </>
          }
        >
          {data.schedules.map((schedule) => (
            <tr key={schedule.name}>
              <td>
                <a href={to(["schedules", schedule.name])}>{schedule.name}</a>
              </td>
              <td class="wide-cell">
                {schedule.in_words}
                {schedule.cron !== null && (
                  <div class="muted mono">
                    {schedule.cron} {schedule.zone}
                  </div>
                )}
              </td>
              <td>{schedule.task}</td>
              <td>
                {schedule.paused ? <span class="muted">–</span> : <Ago at={schedule.next_at} none="never" />}
              </td>
              <td>
                <Ago at={schedule.last_fired_at} none="never" />{" "}
                {schedule.last_job_id !== null && <JobLink id={schedule.last_job_id} />}
              </td>
              <td>
                <Status word={schedule.paused ? "paused" : "active"} />
              </td>
              <td class="right">
                <span class="row end">
                  <ScheduleActions schedule={schedule} onChange={reload} />
                </span>
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Page>
  );
}
