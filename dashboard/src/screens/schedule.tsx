/** One schedule: what it does, when it will fire, and what became of each time. */

import { useResource } from "../api/resource.ts";
import { Action } from "../parts/action.tsx";
import { second } from "../clock.ts";
import { duration, planned } from "../parts/format.ts";
import { JsonView } from "../parts/json-view.tsx";
import { JobLink } from "../parts/links.tsx";
import { Empty, ProblemNote, ResourceNote } from "../parts/notes.tsx";
import { Status } from "../parts/status.tsx";
import { Facts, Section, Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";
import { go, to } from "../route.ts";
import { Page } from "../shell/page.tsx";
import { DECLARED_WORDS, MISSED_WORDS, OVERLAP_WORDS } from "./schedule-draft.ts";
import { ScheduleActions } from "./schedules.tsx";

const FIRES = 10;

export function ScheduleScreen({ name }: { name: string }) {
  const params = { name };
  const stored = useResource("GET /schedules/{name}", { params }, { everyMs: 10_000 });
  const { data, problem, reload } = stored;
  const fires = useResource(
    "GET /schedules/{name}/preview",
    { params, query: { count: FIRES } },
    { freshMs: 10_000 },
  );
  const history = useResource("GET /schedules/{name}/history", { params, query: { limit: 50 } });
  if (!data) {
    return (
      <Page title={name}>
        <ResourceNote of={stored} what="this schedule" />
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
            send={{ params }}
            done={`${name} is removed.`}
            onDone={() => go(["schedules"])}
            class="small danger"
            ask={{
              title: `Remove ${name}?`,
              body: "It fires no more. Jobs that it made stay.",
              action: "Remove the schedule",
              danger: true,
            }}
          >
            Remove…
          </Action>
        </>
      }
    >
      {data.note && <p class="muted">{data.note}</p>}
      {problem && <ProblemNote problem={problem} retry={reload} />}
      <Facts
        of={[
          ["State", <Status word={data.paused ? "paused" : "active"} />],
          ["Next", data.paused ? "–" : <Ago at={data.next_at} none="never" />],
          ["Task", data.task],
          ["Declared", DECLARED_WORDS[data.origin]],
          ["Queue", data.queue],
          data.cron === null ? null : ["Cron", <span class="mono">{data.cron}</span>],
          data.zone === null ? null : ["Time zone", data.zone],
          ["Missed times", MISSED_WORDS[data.missed]],
          ["If one still runs", OVERLAP_WORDS[data.overlap]],
          ["Attempts", data.max_attempts],
        ]}
      />
      <div class="columns">
        <Section id="fires" title="Next times">
          {data.paused && <p class="muted">It is paused; these are skipped.</p>}
          <ol class="timeline">
            {(fires.data?.fires ?? []).map((at) => (
              <li key={at}>
                <span class="num">{planned(Date.parse(at))}</span>{" "}
                <span class="muted">in {duration(Date.parse(at) - second.value)}</span>
              </li>
            ))}
          </ol>
          {fires.problem && <ProblemNote problem={fires.problem} />}
        </Section>
        <Section id="schedule-payload" title="Payload">
          <JsonView value={data.payload} label="Payload" />
        </Section>
      </div>
      <Section id="history" title="History">
        {history.problem && <ProblemNote problem={history.problem} />}
        <Table
          label="History"
          rows={history.data?.occurrences}
          keyOf={({ at }) => at}
          empty={<Empty title="It has not fired yet" />}
          columns={[
            ["Due", ({ at }) => <Ago at={at} />],
            [
              "Outcome",
              ({ outcome, reason, awaits }) => (
                <>
                  <Status word={outcome} /> {reason && <span class="muted">{reason}</span>}
                  {awaits && <span class="muted">waits for {awaits} to confirm</span>}
                </>
              ),
            ],
            ["Job", ({ job_id: id }) => (id ? <JobLink id={id} /> : "–")],
            ["Leader epoch", (each) => each.leader_epoch, "right num"],
          ]}
        />
      </Section>
    </Page>
  );
}
