/** What happened to a job: its states, its runs with their epochs, and who owned it. */

import type { JobBody } from "../../../src/api/bodies/job-body.ts";
import { useResource } from "../api/resource.ts";
import { NodeLink } from "../parts/links.tsx";
import { ProblemNote } from "../parts/notes.tsx";
import { Status } from "../parts/status.tsx";
import { Table } from "../parts/table.tsx";
import { Ago, At, Took } from "../parts/time.tsx";

export function JobHistory({ id, job }: { id: string; job: JobBody }) {
  const { data, problem, reload } = useResource(
    "GET /jobs/{id}/timeline",
    { params: { id } },
    { freshMs: 1_000 },
  );
  if (!data) return problem ? <ProblemNote problem={problem} retry={reload} /> : null;
  const { events, runs, handoffs } = data;
  return (
    <>
      <section aria-labelledby="runs">
        <h2 id="runs">Runs</h2>
        {runs.length === 0 ? (
          <p class="muted">It has not run yet.</p>
        ) : (
          <Table
            label="Runs"
            head={
              <>
                <th class="right narrow">Job epoch</th>
                <th>Outcome</th>
                <th>Node</th>
                <th class="right">Leader epoch</th>
                <th>Started</th>
                <th class="right">Took</th>
                <th>Error</th>
              </>
            }
          >
            {runs.map((run) => (
              <tr key={run.job_epoch}>
                <td class="right num">{run.job_epoch}</td>
                <td>
                  <Status word={run.outcome} tone={run.outcome === "running" ? "busy" : undefined} />
                </td>
                <td>
                  <NodeLink name={run.worker} />
                </td>
                <td class="right num">{run.leader_epoch ?? "–"}</td>
                <td>
                  <Ago at={run.started_at} />
                </td>
                <td class="right">
                  {run.started_at === null ? "–" : <Took from={run.started_at} until={run.ended_at} />}
                </td>
                <td class="wide-cell">{run.error ? `${run.error.code}: ${run.error.message}` : ""}</td>
              </tr>
            ))}
          </Table>
        )}
      </section>
      <div class="columns">
        <section aria-labelledby="timeline">
          <h2 id="timeline">Timeline</h2>
          <ol class="timeline">
            {events.map((event, index) => (
              <li key={`${index} ${event.at} ${event.what}`}>
                <At at={event.at} /> <strong>{event.what}</strong>{" "}
                <span class="muted">
                  {[
                    event.node && `on ${event.node}`,
                    event.job_epoch !== null && `job epoch ${event.job_epoch}`,
                    event.owner_epoch !== null && `owner epoch ${event.owner_epoch}`,
                    event.leader_epoch !== null && `leader epoch ${event.leader_epoch}`,
                  ]
                    .filter(Boolean)
                    .join(", ")}
                </span>
                {event.message && <div class="prewrap">{event.message}</div>}
              </li>
            ))}
          </ol>
        </section>
        <section aria-labelledby="handoffs">
          <h2 id="handoffs">Owners</h2>
          {handoffs.length === 0 ? (
            <p class="muted">
              Owned by <NodeLink name={job.owner} /> under owner epoch {job.owner_epoch}; it was never handed
              over.
            </p>
          ) : (
            <ol class="timeline">
              {handoffs.map((handoff) => (
                <li key={`${handoff.at} ${handoff.owner_epoch}`}>
                  <At at={handoff.at} />{" "}
                  <strong>
                    {handoff.from ?? "nobody"} → {handoff.to ?? "nobody"}
                  </strong>{" "}
                  <span class="muted">
                    owner epoch {handoff.owner_epoch ?? "–"}
                    {handoff.reason && `, ${handoff.reason}`}
                  </span>
                </li>
              ))}
            </ol>
          )}
        </section>
      </div>
    </>
  );
}
