/** What fails, by what it says: one line instead of a thousand jobs. */

import { useResource } from "../api/resource.ts";
import { barredFrom } from "../api/session.ts";
import { count, plural } from "../parts/format.ts";
import { JobLink, QueueLink } from "../parts/links.tsx";
import { Empty, Loading, PartialNote, ProblemNote } from "../parts/notes.tsx";
import { Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";
import { place, refine, to } from "../route.ts";
import { openBulk } from "../shell/bulk.tsx";
import { Page } from "../shell/page.tsx";

export function FailuresScreen() {
  const { query } = place.value;
  const { queue, task } = query;
  const { data, problem, reload } = useResource("GET /cluster/failures", { query: { queue, task } });
  const barred = barredFrom("POST /cluster/jobs/bulk");
  const total = (data?.groups ?? []).reduce((sum, group) => sum + group.count, 0);
  return (
    <Page
      title="Failures"
      about="Failed jobs that say the same, together. Numbers, ids and quoted words are left out of the comparison."
      actions={
        total > 0 && (
          <button
            type="button"
            disabled={barred !== null}
            title={barred ?? undefined}
            onClick={() =>
              openBulk({
                action: "retry",
                what: "all failed jobs",
                filter: { status: "failed", queue, task },
                onDone: reload,
              })
            }
          >
            Retry all failed…
          </button>
        )
      }
    >
      {problem && <ProblemNote problem={problem} retry={reload} />}
      <PartialNote partial={data?.partial ?? false} missing={data?.unreachable} />
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
      {!data && !problem && <Loading what="failures" />}
      {data?.groups.length === 0 && (
        <Empty title="Nothing has failed">
          Jobs whose attempts are used up appear here, grouped by their error.
        </Empty>
      )}
      {data && data.groups.length > 0 && (
        <Table
          label="Failures by error"
          head={
            <>
              <th class="right narrow">Jobs</th>
              <th>Error</th>
              <th>Task</th>
              <th>Queues</th>
              <th>First</th>
              <th>Last</th>
              <th>For example</th>
              <th>
                <span class="unseen">Actions</span>
              </th>
            </>
          }
        >
          {data.groups.map((group) => (
            <tr key={`${group.task} ${group.code} ${group.message}`}>
              <td class="right num">
                <a href={to(["jobs"], { status: "failed", task: group.task, error_code: group.code })}>
                  {count(group.count)}
                </a>
              </td>
              <td class="wide-cell">
                <strong>{group.code}</strong> <span class="prewrap">{group.message}</span>
              </td>
              <td>{group.task}</td>
              <td>
                {group.queues.map((name, index) => (
                  <span key={name}>
                    {index > 0 && ", "}
                    <QueueLink name={name} />
                  </span>
                ))}
              </td>
              <td>
                <Ago at={group.first_at} />
              </td>
              <td>
                <Ago at={group.last_at} />
              </td>
              <td>
                <JobLink id={group.example_job_id} />
              </td>
              <td class="right">
                <button
                  type="button"
                  class="small"
                  disabled={barred !== null}
                  title={barred ?? undefined}
                  aria-label={`Retry ${plural(group.count, "job")} with ${group.code}: ${group.message}`}
                  onClick={() =>
                    openBulk({
                      action: "retry",
                      what: `failed jobs of ${group.task} with ${group.code}`,
                      filter: {
                        status: "failed",
                        task: group.task,
                        error_code: group.code,
                        error_message: group.message,
                      },
                      onDone: reload,
                    })
                  }
                >
                  Retry…
                </button>
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Page>
  );
}
