/** One schedule: what it does, when it will fire, and what became of each time. */

import { useResource } from "../api/resource.ts";
import { call } from "../api/call.ts";
import { Action } from "../parts/action.tsx";
import { second } from "../clock.ts";
import { duration, planned } from "../parts/format.ts";
import { JsonView } from "../parts/json-view.tsx";
import { JobLink } from "../parts/links.tsx";
import { Empty, Loading, ProblemNote } from "../parts/notes.tsx";
import { Status } from "../parts/status.tsx";
import { Facts, Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";
import { go, to } from "../route.ts";
import { Page } from "../shell/page.tsx";
import { ScheduleActions } from "./schedule-actions.tsx";
import { MISSED_WORDS, OVERLAP_WORDS } from "./schedule-words.ts";

const FIRES = 10;

export function ScheduleScreen({ name }: { name: string }) {
  const params = { name };
  const { data, problem, reload } = useResource("GET /schedules/{name}", { params }, { everyMs: 10_000 });
  const fires = useResource(
    "GET /schedules/{name}/preview",
    { params, query: { count: FIRES } },
    { freshMs: 10_000 },
  );
  const history = useResource("GET /schedules/{name}/history", { params, query: { limit: 50 } });
  if (!data) {
    return (
      <Page title={name}>
        {problem ? <ProblemNote problem={problem} retry={reload} /> : <Loading what="this schedule" />}
        <p>
          <a href={to(["schedules"])}>All schedules</a>
        </p>
      </Page>
    );
  }
  const changed = (): void => {
    reload();
    history.reload();
    fires.reload();
  };
  return (
    <Page
      title={name}
      about={data.in_words}
      actions={
        <>
          <a class="button small" href={to(["schedules"], { form: "change", name })}>
            Change…
          </a>
          <ScheduleActions schedule={data} onChange={changed} />
          <Action
            route="DELETE /schedules/{name}"
            doing={`Removing ${name}`}
            class="small danger"
            ask={{
              title: `Remove ${name}?`,
              body: "It fires no more. Jobs that it made stay.",
              action: "Remove the schedule",
              danger: true,
            }}
            run={async () => {
              await call("DELETE /schedules/{name}", { params });
              go(["schedules"]);
              return `${name} is removed.`;
            }}
          >
            Remove…
          </Action>
        </>
      }
    >
      {problem && <ProblemNote problem={problem} retry={reload} />}
      <Facts
        of={[
          ["State", <Status word={data.paused ? "paused" : "active"} />],
          ["Next", data.paused ? "–" : <Ago at={data.next_at} none="never" />],
          ["Task", data.task],
          ["Queue", data.queue],
          data.cron === null ? null : ["Cron", <span class="mono">{data.cron}</span>],
          data.zone === null ? null : ["Time zone", data.zone],
          ["Missed times", MISSED_WORDS[data.missed]],
          ["If one still runs", OVERLAP_WORDS[data.overlap]],
          ["Attempts", data.max_attempts],
        ]}
      />
      <div class="columns">
        <section aria-labelledby="fires">
          <h2 id="fires">Next times</h2>
          {data.paused && <p class="muted">It is paused; these are passed over.</p>}
          <ol class="timeline">
            {(fires.data?.fires ?? []).map((at) => (
              <li key={at}>
                <span class="num">{planned(Date.parse(at))}</span>{" "}
                <span class="muted">in {duration(Date.parse(at) - second.value)}</span>
              </li>
            ))}
          </ol>
          {fires.problem && <ProblemNote problem={fires.problem} />}
        </section>
        <section aria-labelledby="schedule-payload">
          <h2 id="schedule-payload">Payload</h2>
          <JsonView value={data.payload} label="Payload" />
        </section>
      </div>
      <section aria-labelledby="history">
        <h2 id="history">History</h2>
        {history.problem && <ProblemNote problem={history.problem} />}
        {history.data?.occurrences.length === 0 ? (
          <Empty title="It has not fired yet" />
        ) : (
          <Table
            label="History"
            head={
              <>
                <th>Due</th>
                <th>Outcome</th>
                <th>Job</th>
                <th class="right">Leader epoch</th>
              </>
            }
          >
            {(history.data?.occurrences ?? []).map((each) => (
              <tr key={each.at}>
                <td>
                  <Ago at={each.at} />
                </td>
                <td>
                  <Status word={each.outcome} /> {each.reason && <span class="muted">{each.reason}</span>}
                  {each.awaits && <span class="muted">waits for {each.awaits} to confirm</span>}
                </td>
                <td>{each.job_id ? <JobLink id={each.job_id} /> : "–"}</td>
                <td class="right num">{each.leader_epoch}</td>
              </tr>
            ))}
          </Table>
        )}
      </section>
    </Page>
  );
}
