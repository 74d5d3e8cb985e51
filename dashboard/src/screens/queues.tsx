/** Queues: how deep they are, how old their oldest job is, and how fast they move. */

import type { AnswerOf } from "../../../src/api/operation-table.ts";
import { useResource } from "../api/resource.ts";
import { second } from "../clock.ts";
import { Action } from "../parts/action.tsx";
import { count, duration, perSecond } from "../parts/format.ts";
import { Meter } from "../parts/meter.tsx";
import { Empty, PartialNote, ResourceNote } from "../parts/notes.tsx";
import { Status } from "../parts/status.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { to } from "../route.ts";
import { Page } from "../shell/page.tsx";

type QueueBody = AnswerOf<"GET /queues">["queues"][number];

export function QueuesScreen() {
  const queues = useResource("GET /queues", {}, { everyMs: 10_000 });
  const { data } = queues;
  return (
    <Page title="Queues" about="Queues are created on first use.">
      <ResourceNote of={queues} what="queues" />
      <PartialNote of={data} />
      <Table
        label="Queues"
        rows={data?.queues}
        keyOf={({ name }) => name}
        columns={columns(queues.reload)}
        empty={
          <Empty title="There are no queues yet" command="baton submit hello --queue greetings">
            A queue is created by its first job.
          </Empty>
        }
      />
    </Page>
  );
}

function columns(reload: () => void): readonly Column<QueueBody>[] {
  const figure = "right num";
  return [
    [
      "Queue",
      ({ name, paused }) => (
        <>
          <a href={to(["jobs"], { queue: name })}>{name}</a> {paused && <Status word="paused" />}
        </>
      ),
    ],
    [
      "Waiting",
      ({ name, counts }) => (
        <a href={to(["jobs"], { queue: name, status: "queued" })}>{count(counts.queued)}</a>
      ),
      figure,
    ],
    [
      "Oldest",
      ({ oldest_waiting_at: at }) =>
        at ? duration(second.value - Date.parse(at)) : <span class="muted">–</span>,
      figure,
    ],
    ["In / s", (queue) => perSecond(queue.submitted_per_second), figure],
    ["Out / s", (queue) => perSecond(queue.finished_per_second), figure],
    ["Running of slots", ({ counts, slots }) => <Slots running={counts.processing} slots={slots} />],
    ["Scheduled", ({ counts }) => count(counts.scheduled), figure],
    [
      "Failed",
      ({ name, counts: { failed } }) =>
        failed === 0 ? (
          0
        ) : (
          <a class="bad-text" href={to(["failures"], { queue: name })}>
            {count(failed)}
          </a>
        ),
      figure,
    ],
    ["Completed", ({ counts }) => count(counts.completed), figure],
    ["", (queue) => <PauseOrResume queue={queue} onDone={reload} />, "right"],
  ];
}

function Slots({ running, slots }: { running: number; slots: number | null }) {
  if (!slots) {
    return (
      <span class="num">
        {count(running)} {slots === 0 && <span class="bad-text">no worker serves it</span>}
      </span>
    );
  }
  const label = "running jobs, of the slots of the workers that serve this queue";
  return (
    <Meter share={running / slots} late={1.01} text={`${count(running)} of ${count(slots)}`} label={label} />
  );
}

function PauseOrResume({ queue, onDone }: { queue: QueueBody; onDone: () => void }) {
  const { name, paused, counts } = queue;
  const ask = {
    title: `Pause queue ${name}?`,
    body: `Its ${count(counts.queued)} waiting jobs, and all later ones, wait until it is resumed. Running jobs go on.`,
    action: "Pause the queue",
  };
  return (
    <Action
      route={paused ? "POST /queues/{name}/resume" : "POST /queues/{name}/pause"}
      send={{ params: { name } }}
      label={`${paused ? "Resume" : "Pause"} ${name}`}
      done={paused ? `Queue ${name} resumed.` : `Queue ${name} is paused.`}
      onDone={onDone}
      ask={paused ? undefined : ask}
      class="small"
    >
      {paused ? "Resume" : "Pause…"}
    </Action>
  );
}
