/** Queues: how deep they are, how old their oldest job is, and how fast they move. */

import { call } from "../api/call.ts";
import type { AnswerOf } from "../../../src/api/operation-table.ts";
import { useResource } from "../api/resource.ts";
import { second } from "../clock.ts";
import { Action } from "../parts/action.tsx";
import { count, duration, perSecond } from "../parts/format.ts";
import { Meter } from "../parts/meter.tsx";
import { Empty, Loading, PartialNote, ProblemNote } from "../parts/notes.tsx";
import { Status } from "../parts/status.tsx";
import { Table } from "../parts/table.tsx";
import { to } from "../route.ts";
import { Page } from "../shell/page.tsx";

type QueueBody = AnswerOf<"GET /queues">["queues"][number];

export function QueuesScreen() {
  const { data, problem, reload } = useResource("GET /queues", {}, { everyMs: 10_000 });
  const missing = data?.nodes?.filter(({ reachable }) => !reachable).map(({ name }) => name) ?? [];
  return (
    <Page title="Queues" about="A queue is there as soon as a job names it.">
      {problem && <ProblemNote problem={problem} retry={reload} />}
      <PartialNote partial={data?.partial ?? false} missing={missing} />
      {!data && !problem && <Loading what="queues" />}
      {data?.queues.length === 0 && (
        <Empty title="There are no queues yet" command="baton submit hello --queue greetings">
          The first job of a queue makes it.
        </Empty>
      )}
      {data && data.queues.length > 0 && (
        <Table
          label="Queues"
          head={
            <>
              <th>Queue</th>
              <th class="right">Waiting</th>
              <th class="right">Oldest</th>
              <th class="right">In / s</th>
              <th class="right">Out / s</th>
              <th>Running of slots</th>
              <th class="right">Scheduled</th>
              <th class="right">Failed</th>
              <th class="right">Completed</th>
              <th>
                <span class="unseen">Actions</span>
              </th>
            </>
          }
        >
          {data.queues.map((queue) => (
            <Row key={queue.name} queue={queue} onChange={reload} />
          ))}
        </Table>
      )}
    </Page>
  );
}

function Row({ queue, onChange }: { queue: QueueBody; onChange: () => void }) {
  const { name, paused, counts, oldest_waiting_at, slots, submitted_per_second, finished_per_second } = queue;
  const params = { name };
  return (
    <tr>
      <td>
        <a href={to(["jobs"], { queue: name })}>{name}</a> {paused && <Status word="paused" />}
      </td>
      <td class="right num">
        <a href={to(["jobs"], { queue: name, status: "queued" })}>{count(counts.queued)}</a>
      </td>
      <td class="right num">
        {oldest_waiting_at ? (
          duration(second.value - Date.parse(oldest_waiting_at))
        ) : (
          <span class="muted">–</span>
        )}
      </td>
      <td class="right num">{rate(submitted_per_second)}</td>
      <td class="right num">{rate(finished_per_second)}</td>
      <td>
        {slots ? (
          <Meter
            share={counts.processing / slots}
            late={1.01}
            text={`${count(counts.processing)} of ${count(slots)}`}
            label="jobs that run, of the places of the workers that serve this queue"
          />
        ) : (
          <span class="num">
            {count(counts.processing)} {slots === 0 && <span class="bad-text">no worker serves it</span>}
          </span>
        )}
      </td>
      <td class="right num">{count(counts.scheduled)}</td>
      <td class="right num">
        {counts.failed === 0 ? (
          0
        ) : (
          <a class="bad-text" href={to(["failures"], { queue: name })}>
            {count(counts.failed)}
          </a>
        )}
      </td>
      <td class="right num">{count(counts.completed)}</td>
      <td class="right">
        {paused ? (
          <Action
            route="POST /queues/{name}/resume"
            doing={`Resuming ${name}`}
            class="small"
            label={`Resume ${name}`}
            run={async () => {
              await call("POST /queues/{name}/resume", { params });
              onChange();
              return `Queue ${name} hands out its jobs again.`;
            }}
          >
            Resume
          </Action>
        ) : (
          <Action
            route="POST /queues/{name}/pause"
            doing={`Pausing ${name}`}
            class="small"
            label={`Pause ${name}`}
            ask={{
              title: `Pause queue ${name}?`,
              body: `Its ${count(counts.queued)} waiting jobs, and all that come, stay where they are until it is resumed. What runs goes on.`,
              action: "Pause the queue",
            }}
            run={async () => {
              await call("POST /queues/{name}/pause", { params });
              onChange();
              return `Queue ${name} is paused.`;
            }}
          >
            Pause…
          </Action>
        )}
      </td>
    </tr>
  );
}

function rate(value: number | null): string {
  return value === null ? "–" : perSecond(value);
}
