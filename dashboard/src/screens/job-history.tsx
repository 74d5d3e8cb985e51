/** What happened to a job: its states, its runs with their epochs, and who owned it. */

import type { JobBody } from "../../../src/api/bodies/job-body.ts";
import { useResource } from "../api/resource.ts";
import { NodeLink } from "../parts/links.tsx";
import { ProblemNote } from "../parts/notes.tsx";
import { Status } from "../parts/status.tsx";
import { Section, Table } from "../parts/table.tsx";
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
      <Section id="runs" title="Runs">
        <Table
          label="Runs"
          rows={runs}
          keyOf={(run) => String(run.job_epoch)}
          empty={<p class="muted">It has not run yet.</p>}
          columns={[
            ["Job epoch", (run) => run.job_epoch, "right num narrow"],
            [
              "Outcome",
              ({ outcome }) => <Status word={outcome} tone={outcome === "running" ? "busy" : undefined} />,
            ],
            ["Node", ({ worker }) => <NodeLink name={worker} />],
            ["Leader epoch", (run) => run.leader_epoch ?? "–", "right num"],
            ["Started", (run) => <Ago at={run.started_at} />],
            [
              "Took",
              ({ started_at: from, ended_at: to }) => (from === null ? "–" : <Took from={from} until={to} />),
              "right",
            ],
            ["Error", ({ error }) => (error ? `${error.code}: ${error.message}` : ""), "wide-cell"],
          ]}
        />
      </Section>
      <div class="columns">
        <Section id="timeline" title="Timeline">
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
        </Section>
        <Section id="handoffs" title="Owners">
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
        </Section>
      </div>
    </>
  );
}
