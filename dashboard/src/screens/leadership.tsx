/** Who led when and why it changed, and what was refused of those who led no more. */

import type { AnswerOf } from "../../../src/api/operation-table.ts";
import { LEADER_ROLES } from "../../../src/core/leadership/term.ts";
import { amongPeers } from "../api/live.ts";
import { useResource } from "../api/resource.ts";
import { second } from "../clock.ts";
import { count, duration, plural } from "../parts/format.ts";
import { JobLink, NodeLink } from "../parts/links.tsx";
import { Empty, Loading, PartialNote, ProblemNote } from "../parts/notes.tsx";
import { Status } from "../parts/status.tsx";
import { Table } from "../parts/table.tsx";
import { Ago, At } from "../parts/time.tsx";
import { place, to } from "../route.ts";
import { Page } from "../shell/page.tsx";

export function LeadershipScreen() {
  const roles = amongPeers.value ? (["scheduler"] as const) : LEADER_ROLES;
  const role = roles.find((each) => each === place.value.query["role"]) ?? "scheduler";
  const leaders = useResource("GET /cluster/leaders", {}, { freshMs: 1_000, everyMs: 5_000 });
  const history = useResource(
    "GET /cluster/leaders/history",
    { query: { role, limit: 50 } },
    { freshMs: 1_000 },
  );
  return (
    <Page
      title="Leadership"
      about={
        amongPeers.value
          ? "One node leads, under an epoch that only grows. What is written under an older one is refused."
          : "One node leads in each role, under an epoch that only grows. What is written under an older one is refused."
      }
    >
      {leaders.problem && <ProblemNote problem={leaders.problem} retry={leaders.reload} />}
      {!leaders.data && !leaders.problem && <Loading what="the leaders" />}
      {leaders.data && (
        <Table
          label="Leaders"
          head={
            <>
              <th>Role</th>
              <th>Leader</th>
              <th class="right">Epoch</th>
              <th>Since</th>
              <th>Lease</th>
            </>
          }
        >
          {leaders.data.leaders.filter(isOneOf(roles)).map((leader) => (
            <tr key={leader.role}>
              <td>{words(leader.role)}</td>
              <td>
                <NodeLink name={leader.node_id} />
              </td>
              <td class="right num">{leader.epoch}</td>
              <td>
                <Ago at={leader.acquired_at} />
              </td>
              <td>
                <Status word={leader.valid ? "valid" : "run out"} tone={leader.valid ? "good" : "bad"} />{" "}
                <span class="muted">
                  until <At at={leader.lease_until} />
                </span>
              </td>
            </tr>
          ))}
        </Table>
      )}
      {amongPeers.value ? (
        <p class="muted">
          In a cluster of peers each node takes samples and removes old jobs in its own store; nobody leads in
          that.
        </p>
      ) : (
        <nav class="tabs" aria-label="Role">
          {roles.map((each) => (
            <a
              key={each}
              href={to(["leadership"], { role: each })}
              aria-current={each === role ? "page" : undefined}
            >
              {words(each)}
            </a>
          ))}
        </nav>
      )}
      {history.problem && <ProblemNote problem={history.problem} retry={history.reload} />}
      {history.data && (
        <>
          <PartialNote partial={history.data.partial} missing={history.data.unreachable} />
          <Terms terms={history.data.terms} />
          <Refused refused={history.data.refused} />
        </>
      )}
    </Page>
  );
}

function isOneOf(roles: readonly string[]): (leader: { role: string }) => boolean {
  return ({ role }) => roles.includes(role);
}

function words(role: string): string {
  return role.replaceAll("_", " ");
}

type History = AnswerOf<"GET /cluster/leaders/history">;

function Terms({ terms }: { terms: History["terms"] }) {
  if (terms.length === 0) return <Empty title="No term has been noted yet" />;
  return (
    <section aria-labelledby="terms">
      <h2 id="terms">Terms</h2>
      <Strip terms={terms} />
      <Table
        label="Terms"
        head={
          <>
            <th class="right narrow">Epoch</th>
            <th>Node</th>
            <th>Began</th>
            <th class="right">Led for</th>
            <th>Ended because</th>
          </>
        }
      >
        {terms.map((term) => (
          <tr key={`${term.epoch} ${term.node_id} ${term.started_at}`}>
            <td class="right num">{term.epoch}</td>
            <td>
              <NodeLink name={term.node_id} />
            </td>
            <td>
              <Ago at={term.started_at} />
            </td>
            <td class="right num">
              {duration(
                (term.ended_at ? Date.parse(term.ended_at) : second.value) - Date.parse(term.started_at),
              )}
            </td>
            <td class="wide-cell">
              {term.ended_at === null ? (
                <Status word="leads now" tone="good" />
              ) : (
                (term.reason ?? "not known")
              )}
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

/** The same as a picture: time from left to right, a colour for each node. */
function Strip({ terms }: { terms: History["terms"] }) {
  const oldestFirst = [...terms].reverse();
  const from = Date.parse(oldestFirst[0]!.started_at);
  const now = second.value;
  const span = Math.max(1, now - from);
  const names = [...new Set(oldestFirst.map(({ node_id }) => node_id))].sort();
  return (
    <div class="strip-box">
      <div class="strip" aria-hidden="true">
        {oldestFirst.map((term) => {
          const start = Date.parse(term.started_at);
          const end = term.ended_at ? Date.parse(term.ended_at) : now;
          const left = `${((start - from) / span) * 100}%`;
          const width = `${Math.max(0.4, ((end - start) / span) * 100)}%`;
          return (
            <span
              key={`${term.epoch} ${term.node_id}`}
              class={`strip-term hue-${names.indexOf(term.node_id) % 6}`}
              style={{ left, width }}
              title={`${term.node_id}, epoch ${term.epoch}`}
            />
          );
        })}
      </div>
      <p class="row muted">
        {names.map((name, index) => (
          <span key={name} class={`strip-key hue-${index % 6}`}>
            {name}
          </span>
        ))}
        <span class="grow" />
        <span>
          {plural(terms.length, "term")} in {duration(span)}
        </span>
      </p>
    </div>
  );
}

function Refused({ refused }: { refused: History["refused"] }) {
  return (
    <section aria-labelledby="refused">
      <h2 id="refused">Refused stale writes</h2>
      {refused.count === 0 ? (
        <p class="muted">
          None. When a node that was paused or cut off wakes up and writes under an old epoch, it is refused
          and told here.
        </p>
      ) : (
        <>
          <p>
            <strong class="num">{count(refused.count)}</strong> refused; nothing of them was stored. The
            latest:
          </p>
          <Table
            label="Refused stale writes"
            head={
              <>
                <th>When</th>
                <th>Node</th>
                <th>What</th>
                <th class="right">Its epoch</th>
                <th class="right">Current epoch</th>
                <th>Job</th>
              </>
            }
          >
            {refused.examples.map((each, index) => (
              <tr key={`${index} ${each.at}`}>
                <td>
                  <Ago at={each.at} />
                </td>
                <td>
                  <NodeLink name={each.node} />
                </td>
                <td>{each.what}</td>
                <td class="right num">{each.carried_epoch}</td>
                <td class="right num">{each.current_epoch}</td>
                <td>{each.job_id ? <JobLink id={each.job_id} /> : "–"}</td>
              </tr>
            ))}
          </Table>
        </>
      )}
    </section>
  );
}
