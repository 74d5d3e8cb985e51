/** Failed jobs grouped by error. */

import type { AnswerOf } from "../../../src/api/operation-table.ts";
import { useResource } from "../api/resource.ts";
import { count, plural } from "../parts/format.ts";
import { JobLink, QueueLink } from "../parts/links.tsx";
import { Empty, PartialNote, ResourceNote } from "../parts/notes.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";
import { place, refine, to } from "../route.ts";
import { BulkButton } from "../shell/bulk.tsx";
import { Page } from "../shell/page.tsx";

export function FailuresScreen() {
  const { query } = place.value;
  const { queue, task } = query;
  const failures = useResource("GET /cluster/failures", { query: { queue, task } });
  const { data } = failures;
  const total = (data?.groups ?? []).reduce((sum, group) => sum + group.count, 0);
  return (
    <Page
      title="Failures"
      about="Failed jobs grouped by error. Numbers, ids and quoted words are left out of the comparison."
      actions={
        total > 0 && (
          <BulkButton
            action="retry"
            what="all failed jobs"
            filter={{ status: "failed", queue, task }}
            onDone={failures.reload}
          >
            Retry all failed…
          </BulkButton>
        )
      }
    >
      <ResourceNote of={failures} what="failures" />
      <PartialNote of={data} />
      {(queue || task) && (
        <p>
          Only {task && `task ${task}`} {queue && `queue ${queue}`}{" "}
          <button type="button" class="small quiet" onClick={() => refine({ queue: null, task: null })}>
            show all
          </button>
        </p>
      )}
      {data && !data.complete && (
        <p class="muted">Of the newest {count(data.looked_at)} failed jobs; there are more.</p>
      )}
      <Table
        label="Failures by error"
        rows={data?.groups}
        keyOf={({ task: of, code, message }) => `${of} ${code} ${message}`}
        columns={columns(failures.reload)}
        empty={
          <Empty title="Nothing has failed">
            Jobs whose attempts are used up appear here, grouped by their error.
          </Empty>
        }
      />
    </Page>
  );
}

type Group = AnswerOf<"GET /cluster/failures">["groups"][number];

function columns(reload: () => void): readonly Column<Group>[] {
  return [
    [
      "Jobs",
      ({ task, code, count: jobs }) => (
        <a href={to(["jobs"], { status: "failed", task, error_code: code })}>{count(jobs)}</a>
      ),
      "right num narrow",
    ],
    [
      "Error",
      ({ code, message }) => (
        <>
          <strong>{code}</strong> <span class="prewrap">{message}</span>
        </>
      ),
      "wide-cell",
    ],
    ["Task", ({ task }) => task],
    [
      "Queues",
      ({ queues }) =>
        queues.map((name, index) => (
          <span key={name}>
            {index > 0 && ", "}
            <QueueLink name={name} />
          </span>
        )),
    ],
    ["First", (group) => <Ago at={group.first_at} />],
    ["Last", (group) => <Ago at={group.last_at} />],
    ["For example", (group) => <JobLink id={group.example_job_id} />],
    [
      "",
      ({ task, code, message, count: jobs }) => (
        <BulkButton
          class="small"
          label={`Retry ${plural(jobs, "job")} with ${code}: ${message}`}
          action="retry"
          what={`failed jobs of ${task} with ${code}`}
          filter={{ status: "failed", task, error_code: code, error_message: message }}
          onDone={reload}
        >
          Retry…
        </BulkButton>
      ),
      "right",
    ],
  ];
}
